package doctor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	sdkclient "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/client"
)

// temporalChecks are the checks that the in-memory [server] supports.
func temporalChecks(d *Deployment) []Check {
	return append(d.ConnectionChecks()[:3], check(d, checkPolling))
}

func TestAServerWithoutProblems(t *testing.T) {
	s := newServer()
	d := s.deployment()
	d.Now = func() time.Time { return s.now }
	for name, f := range examine(t, temporalChecks(d)...) {
		require.Equal(t, OK, f.Severity, "%s: %s", name, f.Measured)
	}
	require.Len(t, s.started, 1)
	require.Equal(t, []string{s.started[0].ID}, s.deleted)
	require.Empty(t, s.stale)
	require.NotZero(t, s.started[0].StartDelay, "no task is scheduled for a task queue that nobody polls")
}

func TestAClosedPort(t *testing.T) {
	d, err := ForClient(client.Config{Address: "127.0.0.1:1", Namespace: "default", NATSURL: "none"})
	require.NoError(t, err)
	defer d.Close()
	found := examine(t, d.Checks()...)
	requireFinding(t, found[CheckConnection], Error, "127.0.0.1:1 does not respond")
	require.True(t, found[CheckConnection].IsUnreachable())
	requireFinding(t, found["workers.report"], Skipped, "requires workers.polling")
	requireFinding(t, found["nats.roundtrip"], Skipped, "live deltas are off")
}

func TestAServerThatDeniesAccessIsReachable(t *testing.T) {
	d := newServer().deployment()
	d.Dial = func(context.Context) (sdkclient.Client, error) {
		return nil, serviceerror.NewPermissionDenied("no", "")
	}
	found := examine(t, check(d, CheckConnection))[CheckConnection]
	requireFinding(t, found, Error, "temporal:7233 denies access")
	require.Contains(t, found.Fix, "credentials")
	require.False(t, found.IsUnreachable())
}

func TestAServerThatDeniesAnOperation(t *testing.T) {
	s := newServer()
	s.denied = serviceerror.NewPermissionDenied("no", "")
	d := s.deployment()
	found := examine(t, check(d, CheckConnection))[CheckConnection]
	requireFinding(t, found, Error, "get system info: no")
	require.Contains(t, found.Fix, "credentials")
}

// The Temporal SDK labels its metrics with the task queue.
func TestRepeatedChecksUseTheSameTaskQueue(t *testing.T) {
	s := newServer()
	for range 2 {
		d := s.deployment()
		examine(t, temporalChecks(d)...)
	}
	require.Len(t, s.started, 2)
	require.Equal(t, s.started[0].TaskQueue, s.started[1].TaskQueue)
}

func TestErrorsOfTheServerContainNoSecrets(t *testing.T) {
	d := newServer().deployment()
	d.Dial = func(context.Context) (sdkclient.Client, error) {
		return nil, errors.New("Authorization: Bearer abcdefghijklmnop1234567890")
	}
	require.NotContains(t, examine(t, check(d, CheckConnection))[CheckConnection].Measured, "abcdefghijklmnop")
}

func TestProblemsOfTheServer(t *testing.T) {
	tests := []struct {
		name     string
		breaks   func(*server)
		check    string
		severity Severity
		measured string
		fix      string
	}{
		{"an old version", func(s *server) { s.version = "1.28.2" }, CheckConnection, Warning, "server 1.28.2", "1.29.0 or later"},
		{"a missing namespace", func(s *server) { s.namespace = "other" }, checkNamespace, Error, `namespace "default" does not exist`, "namespace create -n default"},
		{"a short retention", func(s *server) { s.retention = 24 * time.Hour }, checkNamespace, Warning, "for 24h0m0s, less than 72h0m0s", "namespace update -n default --retention"},
		{"no worker", func(s *server) { s.pollers = nil }, checkPolling, Error, `polled task queue "contexts" for workflow tasks`, "start a worker"},
		{"no worker for activities", func(s *server) { s.pollers[enums.TASK_QUEUE_TYPE_ACTIVITY] = nil }, checkPolling, Error, "for activity tasks", "start a worker"},
		{"a worker that stopped", func(s *server) {
			s.pollers[enums.TASK_QUEUE_TYPE_WORKFLOW] = []*taskqueuepb.PollerInfo{{Identity: "1@a", LastAccessTime: timestamppb.New(time.Now().Add(-time.Hour))}}
		}, checkPolling, Error, "for workflow tasks within 2m0s", "start a worker"},
		{"two versions", func(s *server) {
			s.pollers[enums.TASK_QUEUE_TYPE_ACTIVITY] = []*taskqueuepb.PollerInfo{poller("2@b", "0.3.0"), poller("3@c", "79054025255fb1a26e4bc422aef54eb4")}
		}, checkPolling, Warning, "1@a (0.2.0), 2@b (0.3.0), 3@c (unknown version)", "complete the upgrade"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer()
			tt.breaks(s)
			found := examine(t, temporalChecks(s.deployment())...)
			requireFinding(t, found[tt.check], tt.severity, tt.measured)
			require.Contains(t, found[tt.check].Fix, tt.fix)
		})
	}
}

func TestClockSkew(t *testing.T) {
	tests := []struct {
		skew     time.Duration
		severity Severity
		measured string
	}{
		{0, OK, "0s ahead"},
		{time.Second, OK, "1s ahead of that of the Temporal server"},
		{3 * time.Second, Warning, "3s ahead of that of the Temporal server, more than 2s"},
		{-3 * time.Second, Warning, "3s behind that of the Temporal server"},
		{2 * time.Hour, Error, "2h0m0s ahead of that of the Temporal server, more than 1m0s"},
	}
	for _, tt := range tests {
		t.Run(tt.skew.String(), func(t *testing.T) {
			s := newServer()
			d := s.deployment()
			d.Now = func() time.Time { return s.now.Add(tt.skew) }
			requireFinding(t, examine(t, temporalChecks(d)...)["clock.skew"], tt.severity, tt.measured)
		})
	}
}
