// Package devserver runs Temporal's own development server, Web UI included, as
// a child process on loopback, with its data in a directory.
//
//	command, err := devserver.Find(ctx, nil)
//	lock, err := devserver.Lock(".chronicle")
//	server, err := devserver.Start(ctx, devserver.Options{Command: command, DataDir: ".chronicle"})
//	…                       // server.Address(), server.UIURL()
//	err = server.Stop()
//	err = lock.Unlock()
//
// What it guarantees:
//   - Start returns when the namespace can be used and the Web UI answers, or
//     with an error that holds the last lines the server wrote.
//   - What was stored is there after a restart, even when the server was killed.
//   - Closed workflows are kept for [Retention], not for the day that the
//     server gives them as shipped.
//   - The server does not outlive this process; see package child.
//   - It writes nothing outside the data directory: temporal.db with its
//     journals, and temporal.log with the output since its last start.
package devserver
