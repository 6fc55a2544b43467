package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	reply, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(reply.Status)
}
