package rig

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// startProgram waits until the program prints its ready line, and returns the values in that line. If the
// start fails, the error contains the log, unless cmd.Stderr is set.
func startProgram(ctx context.Context, cmd *exec.Cmd) (*child.Process, map[string]string, error) {
	log := &bytes.Buffer{}
	if cmd.Stderr == nil {
		cmd.Stderr = log
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer out.Close()
	cmd.Stdout = in
	process, err := child.Start(cmd, child.Options{OwnGroup: true})
	_ = in.Close() // the child has a copy
	if err != nil {
		return nil, nil, err
	}
	type readyLine struct {
		text string
		err  error
	}
	ready := make(chan readyLine, 1)
	go func() {
		text, err := bufio.NewReader(out).ReadString('\n')
		if err == nil && !strings.HasPrefix(text, "ready ") {
			err = fmt.Errorf("unexpected output %q", text)
		}
		ready <- readyLine{text, err}
	}()
	select {
	case line := <-ready:
		if line.err == nil {
			return process, valuesIn(line.text), nil
		}
		kill(process)
		return nil, nil, fmt.Errorf("start %s: %w\n%s", cmd.Path, line.err, log)
	case <-ctx.Done():
		kill(process)
		return nil, nil, fmt.Errorf("start %s: %w\n%s", cmd.Path, context.Cause(ctx), log)
	}
}

// valuesIn returns the pairs NAME=VALUE of a line.
func valuesIn(line string) map[string]string {
	values := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			values[name] = value
		}
	}
	return values
}
