package lib

import . "net/http" // want

func get() { Get("x") }
