package contexts

import (
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
)

// Worker runs contexts of a task queue.
type Worker struct {
	worker.Worker
	unmeasure    func() // ends the reading of metrics
	drainTimeout time.Duration
	handBack     chan struct{} // closed to hand running answers back
	stop         sync.Once
	stopped      chan struct{} // closed by Stop
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
	err := w.Worker.Run(ended)
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
