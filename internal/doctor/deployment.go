package doctor

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/stream"
)

// Deployment is what the checks examine. Fields without a default are required, unless the checks
// that use them are not run. Run each of its checks only once.
type Deployment struct {
	Address   string // of Temporal
	Namespace string
	TaskQueue string // of contexts
	// Temporal is the client of the process. Nil: that of Dial, which [Deployment.Close] closes.
	Temporal sdkclient.Client
	Dial     func(context.Context) (sdkclient.Client, error)
	// NATS connects, or returns the connection of the process; nil: live deltas are off.
	NATS      func() (*stream.Conn, error)
	OwnsNATS  bool // the check closes the connection
	Publishes bool // this process publishes deltas
	// Store opens the blob store, or returns that of the process; nil: there is none.
	Store     func(context.Context) (*blobs.Store, error)
	OwnsStore bool // Close closes the store
	Folders   []Folder
	Call      bool // workers send a request to each of their providers

	// Readings that tests replace; nil: those of this machine.
	Now       func() time.Time
	FreeBytes func(folder string) (free, total uint64, err error)
	OpenFiles func() (limit uint64, err error)

	mu       sync.Mutex
	isClosed bool
	dialed   sdkclient.Client
	store    *blobs.Store

	// Results of checks for those that need them.
	described *workflowservice.DescribeNamespaceResponse
	pollers   []Poller
	lateness  time.Duration // of a timer
}

// Folder is a folder on a disk that must not fill up.
type Folder struct {
	Path string
	Use  string // what it contains
}

// Checks returns the checks of a client. One of them asks a worker for its own.
func (d *Deployment) Checks() []Check {
	return []Check{
		d.connection(), d.version(), d.namespace(), d.retention(), d.attributes(), d.hop(), d.timer(),
		d.polling(), d.workerVersions(), d.clock(), d.roundTrip(), d.access(), d.identity(), d.disk(), d.files(), d.report(),
	}
}

// StartChecks returns the cheap checks, for the start of a worker.
func (d *Deployment) StartChecks() []Check {
	return append([]Check{d.version(), d.namespace(), d.retention()}, d.MachineChecks()...)
}

// MachineChecks returns the checks whose results depend on the machine of a worker.
func (d *Deployment) MachineChecks() []Check {
	return []Check{d.clock(), d.roundTrip(), d.access(), d.disk(), d.files()}
}

// Close closes what the checks opened.
func (d *Deployment) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isClosed = true
	if d.dialed != nil {
		d.dialed.Close()
	}
	if d.store != nil && d.OwnsStore {
		_ = d.store.Close() // the probe is complete
	}
}

// setClient closes the client at once if the check was abandoned and the deployment closed.
func (d *Deployment) setClient(c sdkclient.Client) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosed {
		c.Close()
		return
	}
	d.dialed = c
}

// client returns Temporal, or else the client that the check of the connection has dialed.
func (d *Deployment) client() sdkclient.Client {
	if d.Temporal != nil {
		return d.Temporal
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dialed
}

func (d *Deployment) setStore(s *blobs.Store) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosed && d.OwnsStore {
		_ = s.Close()
		return
	}
	d.store = s
}

func (d *Deployment) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

func (d *Deployment) freeBytes(folder string) (free, total uint64, err error) {
	if d.FreeBytes != nil {
		return d.FreeBytes(folder)
	}
	return freeBytes(folder)
}

func (d *Deployment) openFiles() (limit uint64, err error) {
	if d.OpenFiles != nil {
		return d.OpenFiles()
	}
	return openFiles()
}
