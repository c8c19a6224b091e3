package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

// Run is the main function of a program that uses the rig. It runs until a signal cancels the context. The exit code
// is 2 after an [exit.UsageError], and 1 after another error.
func Run(name string, run func(ctx context.Context, arguments []string) error) {
	Main()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := run(ctx, os.Args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if errors.As(err, new(exit.UsageError)) {
		os.Exit(exit.Usage)
	}
	os.Exit(exit.Failure)
}
