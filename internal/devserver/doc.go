// Package devserver runs the Temporal development server, including the Web UI, as a
// child process on loopback, with its data in a directory.
//
//	command, err := devserver.Find(ctx, nil)
//	lock, err := devserver.Lock(".chronicle")
//	server, err := devserver.Start(ctx, devserver.Options{Command: command, DataDir: ".chronicle"})
//	…                       // server.Address(), server.UIURL()
//	err = server.Stop()
//	err = lock.Close()
//
// Guarantees:
//   - Start returns when the namespace and the Web UI are ready, or with an error
//     that includes the last lines of the server's output.
//   - Data survives a restart, even after the server was killed.
//   - Closed workflows are retained for [Retention] instead of the default of one day.
//   - The server does not outlive this process; see package child.
//   - It writes only to the data directory: temporal.db with its journals, and
//     temporal.log with the output since the last start.
package devserver
