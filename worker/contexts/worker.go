package contexts

import (
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
)

// Worker runs contexts of a task queue.
type Worker struct {
	worker.Worker
	measure      func() (stop func())
	unmeasure    func() // stops what Start measures
	drainTimeout time.Duration
	handBack     chan struct{} // closed to hand running answers back
	stop         sync.Once
	stopped      chan struct{} // closed by Stop
}

// Start starts the worker. The caller stops it.
func (w *Worker) Start() error {
	if err := w.Worker.Start(); err != nil {
		return err
	}
	w.unmeasure = w.measure()
	return nil
}

// Run runs the worker until interrupted delivers a value or is closed, or the worker fails.
func (w *Worker) Run(interrupted <-chan any) error {
	ended := make(chan any)
	go func() {
		select {
		case <-interrupted:
			w.Stop()
		case <-w.stopped: // the worker failed
		}
	}()
	unmeasure := w.measure()
	err := w.Worker.Run(ended)
	unmeasure()
	w.Stop()
	return err
}

// Stop stops polling, lets answers finish for Options.DrainTimeout, and hands the others back to
// Temporal. It returns when the worker has stopped.
func (w *Worker) Stop() {
	w.stop.Do(func() {
		defer close(w.stopped)
		drained := time.AfterFunc(w.drainTimeout, func() { close(w.handBack) })
		defer drained.Stop()
		w.unmeasure()
		w.Worker.Stop()
	})
	<-w.stopped
}
