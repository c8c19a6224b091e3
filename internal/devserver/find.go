package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const modulePath = "github.com/seed-9ed7edd4/chronicle"

// Find returns the path of a temporal command whose server is at least MinVersion. It searches the
// directory of this executable, bin/ of the enclosing checkout of Chronicle, and PATH. If there is
// none, it calls notice, unless nil, and builds one in that bin/, which takes minutes.
func Find(ctx context.Context, notice func(message string)) (string, error) {
	root, inCheckout := checkout()
	built := filepath.Join(root, "bin", "temporal")
	var candidates []string
	if executable, err := os.Executable(); err == nil {
		candidates = append(candidates, filepath.Join(filepath.Dir(executable), "temporal"))
	}
	if inCheckout {
		candidates = append(candidates, built)
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		candidates = append(candidates, path)
	}

	var tried []error
	for _, path := range candidates {
		err := check(ctx, path)
		if err == nil {
			return path, nil
		}
		tried = append(tried, err)
	}
	if !inCheckout {
		tried = append(tried, errors.New("not in a checkout of Chronicle, so it cannot be built here"))
		return "", fmt.Errorf("find temporal command: none is usable (install one from https://docs.temporal.io/cli "+
			"with server %v or newer and add it to PATH): %w", MinVersion, errors.Join(tried...))
	}
	if notice != nil {
		notice("building bin/temporal (about 2.5 minutes the first time)")
	}
	if err := build(ctx, root, built); err != nil {
		return "", err
	}
	return built, check(ctx, built)
}

func check(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", path, err)
	}
	version, err := ParseVersion(strings.TrimSpace(string(output)))
	if err != nil {
		return fmt.Errorf("%s --version: %w", path, err)
	}
	if !version.Fine() {
		return fmt.Errorf("%s has server %v (want %v or newer with the same major version)", path, version, MinVersion)
	}
	return nil
}

// build renames a temporary file, so that target is complete, even with concurrent builds.
func build(ctx context.Context, root, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("build temporal: %w", err)
	}
	temporary, err := os.MkdirTemp(filepath.Dir(target), ".temporal-*")
	if err != nil {
		return fmt.Errorf("build temporal: %w", err)
	}
	defer os.RemoveAll(temporary)
	binary := filepath.Join(temporary, "temporal")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/temporalio/cli/cmd/temporal")
	cmd.Dir = filepath.Join(root, "build", "temporal")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build temporal: %s in %s: %w\n%s", cmd, cmd.Dir, err, output)
	}
	if err := os.Rename(binary, target); err != nil {
		return fmt.Errorf("build temporal: %w", err)
	}
	return nil
}

func checkout() (root string, ok bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module "+modulePath+"\n") {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
