package lib

import (
	"fmt"
	"log"             // want
	logger "log/slog" // want
	sys "os"
)

func output() {
	fmt.Print("x")           // want
	fmt.Printf("x")          // want
	fmt.Println("x")         // want
	fmt.Fprintln(sys.Stdout) // want
	fmt.Fprintln(sys.Stderr) // want
	defer log.Print("x")
	logger.Info("x")
	sys.Exit(1) // want
}
