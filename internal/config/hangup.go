package config

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// OnHangup calls reload for each SIGHUP until ctx ends. If the signal reports that the terminal of the
// process was closed, it calls stop instead.
func OnHangup(ctx context.Context, reload, stop func()) {
	// nohup ignores the signal: the process outlives its terminal.
	endsWithTerminal := hasTerminal() && !signal.Ignored(syscall.SIGHUP)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-signals:
				if endsWithTerminal && !hasTerminal() {
					stop()
					return
				}
				reload()
			case <-ctx.Done():
				return
			}
		}
	}()
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	_ = terminal.Close()
	return true
}
