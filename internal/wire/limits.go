package wire

import "github.com/seed-9ed7edd4/chronicle/reducer"

// Limits in bytes of JSON. By default, the server rejects payloads above 2 MiB and messages above 4 MiB. A payload in
// the blob store counts as its reference.
const (
	// MaxEventBytes limits the events that workers create from answers and tool results, and events with
	// inline files. It leaves room for a file of 1 MiB in base64.
	MaxEventBytes = 1_500_000
	// MaxInputBytes limits the inputs into which the chat splits what a user pastes. The SDK of workers
	// warns about larger payloads.
	MaxInputBytes = 1_900_000
	// MaxStoredBytes limits an event, and an input of one or more events. Clients without a blob store
	// have a lower limit. A workflow task reads and writes that much in a fraction of its timeout of ten
	// seconds.
	MaxStoredBytes = 16_000_000
	// MaxAppendBytes limits one [UpdateAppend]; larger input is sent as a signal. The response to a
	// workflow task has up to ten updates, each twice; above the message limit, it would block the run.
	MaxAppendBytes = 64 << 10
	// MaxScheduledBytes limits the event of a [Scheduled]. Each change of the schedule and each workflow copies it.
	MaxScheduledBytes = 32 << 10
	MaxRecordBytes    = 1 << 20 // approximate, one [Record]
)

// MaxSnapshotBytes bounds a [QuerySnapshot] approximately. Larger sessions are read from the log.
const MaxSnapshotBytes = 1 << 20

// Fits reports whether a session fits into [MaxSnapshotBytes].
func Fits(s reducer.Session) bool {
	size := s.Reduced.Size()
	if s.Request != nil {
		for _, call := range s.Request.Calls {
			size += 200 + len(call.Arguments)
		}
	}
	return size <= MaxSnapshotBytes
}
