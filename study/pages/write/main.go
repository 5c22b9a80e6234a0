// Command write makes the pages, and writes them. Go generate starts it in the folder of package pages.
package main

import (
	"fmt"
	"os"

	"github.com/rpcbench/rpcbench/study/pages"
)

func main() {
	if err := pages.Write("../..", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
