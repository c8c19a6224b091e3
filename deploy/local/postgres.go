package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// startPostgres creates a database cluster with the user and password in docker-compose.yml, and starts PostgreSQL.
func (t *topology) startPostgres(ctx context.Context) error {
	service, err := t.compose.service("postgres")
	if err != nil {
		return err
	}
	programs, err := postgresPrograms()
	if err != nil {
		return err
	}
	owner, err := postgresOwner()
	if err != nil {
		return err
	}
	data := filepath.Join(t.dir, "postgres")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	name, password := *service.Environment["POSTGRES_USER"], *service.Environment["POSTGRES_PASSWORD"]
	passwordFile := filepath.Join(t.dir, "postgres.password")
	if err := os.WriteFile(passwordFile, []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	if owner != nil {
		for _, path := range []string{data, passwordFile} {
			if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
				return err
			}
		}
	}
	initdb := exec.Command(filepath.Join(programs, "initdb"), "--pgdata", data,
		"--username", name, "--pwfile", passwordFile, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	if err := t.run(ctx, "initdb", initdb, owner); err != nil {
		return err
	}

	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	t.postgresPort = ports[0]
	// TCP only: the path of a socket could exceed its length limit.
	args := append([]string{"-D", data, "-p", strconv.Itoa(t.postgresPort),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="}, service.Command...)
	if err := t.serve(service, "postgres", exec.Command(filepath.Join(programs, "postgres"), args...), owner); err != nil {
		return err
	}
	return until(ctx, func() error {
		return exec.CommandContext(ctx, filepath.Join(programs, "pg_isready"),
			"--host=127.0.0.1", "--port="+strconv.Itoa(t.postgresPort), "--username="+name).Run()
	})
}

// Distributions do not add these programs to PATH.
func postgresPrograms() (string, error) {
	places := []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin"}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	for _, place := range places {
		// The newest version; comparing strings works for versions with two digits.
		found, err := filepath.Glob(filepath.Join(place, "initdb"))
		if err == nil && len(found) > 0 {
			return filepath.Dir(slices.Max(found)), nil
		}
	}
	return "", fmt.Errorf("find initdb: not on PATH or in %v (install PostgreSQL, on Debian with `apt-get install postgresql`)", places)
}

// PostgreSQL does not run as root. Nil: the current user.
func postgresOwner() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL cannot run as root (create a user named postgres): %w", err)
	}
	uid, err := strconv.ParseUint(owner.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(owner.Gid, 10, 32)
	if err := errors.Join(err, gidErr); err != nil {
		return nil, fmt.Errorf("user postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
