package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/offline"
)

// workerLog is the log file in the data directory while a COMMAND uses the terminal.
const workerLog = "worker.log"

const blobsDir = "blobs"

type local struct {
	endpoints
	dataDir  string
	log      *zap.Logger
	lock     *os.File
	logFile  *os.File
	nats     *natsserver.Server
	model    *http.Server
	temporal *devserver.Server
}

type serverExitError struct{ error }

func (e serverExitError) Unwrap() error { return e.error }

// startLocal starts the servers, first those that fail fastest. If Temporal exits later, it calls end
// with the error.
func (a *app) startLocal(ctx context.Context, end context.CancelCauseFunc, log *zap.Logger) (_ *local, err error) {
	s := a.settings
	l := &local{log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.stop())
		}
	}()
	if l.dataDir, err = filepath.Abs(s.DataDir); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	if l.blobURL, err = a.blobURL(l.dataDir); err != nil {
		return nil, err
	}
	l.lock, err = devserver.Lock(l.dataDir)
	if errors.Is(err, devserver.ErrLocked) {
		return nil, fmt.Errorf("%w (stop the other worker --dev, or set --data-dir)", err)
	}
	if err != nil {
		return nil, err
	}
	if len(s.command) > 0 {
		if l.logFile, err = os.Create(filepath.Join(l.dataDir, workerLog)); err != nil {
			return nil, fmt.Errorf("create log: %w", err)
		}
		l.log = logging.New(l.logFile, s.JSON, a.level)
	}
	// One call for all ports, so that port 0 never selects a port of another flag.
	if _, err := devserver.FreePorts(s.TemporalPort, s.UIPort, s.NATSPort); err != nil {
		return nil, s.portError(err)
	}
	l.natsAuth.TokenFile = filepath.Join(l.dataDir, stream.DevToken)
	token, err := natsserver.Token(l.natsAuth.TokenFile)
	if err != nil {
		return nil, err
	}
	if l.nats, err = natsserver.Start(natsserver.Options{Port: s.NATSPort, Token: token}); err != nil {
		return nil, err
	}
	l.natsURL = l.nats.URL()
	if err := l.chooseModel(a); err != nil {
		return nil, err
	}

	command, err := devserver.Find(ctx, func(message string) { a.progress(log, message) })
	if err != nil {
		return nil, err
	}
	options := devserver.Options{
		Command: command, DataDir: l.dataDir, Namespace: s.Namespace,
		Port: s.TemporalPort, UIPort: s.UIPort, Untuned: s.Untuned,
	}
	a.progress(log, "starting Temporal")
	if l.temporal, err = devserver.Start(ctx, options); err != nil {
		return nil, s.portError(err)
	}
	go func() {
		<-l.temporal.Done()
		end(serverExitError{l.temporal.Err()})
	}()
	l.endpoints.temporal = client.Options{
		HostPort: l.temporal.Address(), Namespace: l.temporal.Namespace(), Logger: logging.Temporal(l.log),
	}
	return l, nil
}

func (l *local) chooseModel(a *app) error {
	var err error
	if l.models, l.budgets, err = a.modelOptions(); err != nil {
		return err
	}
	if hasModel(l.models) {
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("offline model: %w", err)
	}
	l.model = &http.Server{Handler: offline.Handler(offline.Options{
		// In Options, 0 means the default and less than 0 none.
		TokenDelay: cmp.Or(a.settings.OfflineTokenDelay, -1),
	})}
	go func() { _ = l.model.Serve(listener) }()
	l.modelURL = "http://" + listener.Addr().String() + "/v1"
	l.models.Defaults = standIn(l.modelURL)
	return nil
}

func standIn(url string) llm.Defaults {
	return llm.Defaults{ProviderID: "offline", BaseURL: url, Model: offline.Model}
}

func (s settings) portError(err error) error {
	var inUse *devserver.PortError
	if !errors.As(err, &inUse) {
		return err
	}
	flags := map[int]string{s.NATSPort: "--nats-port", s.UIPort: "--ui-port", s.TemporalPort: "--temporal-port"}
	return fmt.Errorf("%w (stop the program that listens there, or set %s; 0: any free port)",
		err, cmp.Or(flags[inUse.Port], "another port"))
}

// stop stops the servers and releases the data directory.
func (l *local) stop() error {
	var errs []error
	if l.model != nil {
		errs = append(errs, l.model.Close())
	}
	if l.nats != nil {
		l.nats.Shutdown()
	}
	if l.temporal != nil {
		errs = append(errs, l.temporal.Stop())
	}
	if l.logFile != nil {
		errs = append(errs, l.log.Sync(), l.logFile.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}
