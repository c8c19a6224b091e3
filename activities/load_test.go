package activities_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Readers of histories recognize the activity by its type, which is the name of its method.
func TestTheNameOfLoadIsThatOfTheProtocol(t *testing.T) {
	_, ok := reflect.TypeFor[*activities.Activities]().MethodByName(wire.ActivityLoad)
	require.True(t, ok)
}

type loading struct {
	t      *testing.T
	bucket *blobstest.Bucket
	*activities.Activities
}

func newLoading(t *testing.T) *loading {
	bucket := blobstest.New(t)
	return &loading{t, bucket, activities.New(activities.Options{Archive: archive.New(bucket.Store)})}
}

func ofJSON(data string) *commonpb.Payload {
	return &commonpb.Payload{Data: []byte(data), Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}}
}

// stored stores a payload and returns a reference to it.
func (l *loading) stored(payload *commonpb.Payload) []byte {
	l.t.Helper()
	data, err := proto.Marshal(payload)
	require.NoError(l.t, err)
	ref, err := archive.New(l.bucket.Store).Blobs("demo").Put(l.t.Context(), data)
	require.NoError(l.t, err)
	id, err := l.bucket.Store.Identity(l.t.Context())
	require.NoError(l.t, err)
	return []byte(`{"driverName":"chronicle-blobs","claimData":{"ref":"` + string(ref) + `","store":"` + id + `","folder":"blobs/demo/"}}`)
}

// inActivity calls a function with the context of an activity.
func inActivity(t *testing.T, run func(context.Context)) {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	check := func(ctx context.Context) error {
		run(ctx)
		return nil
	}
	env.RegisterActivity(check)
	_, err := env.ExecuteActivity(check)
	require.NoError(t, err)
}

func TestLoadReadsWhatTheContextHasRoomFor(t *testing.T) {
	l := newLoading(t)
	large := ofJSON(`"` + strings.Repeat("x", 1000) + `"`)
	for name, test := range map[string]struct {
		in    activities.LoadInput
		error string // empty: none
	}{
		"no limit":          {activities.LoadInput{ContextName: "demo", Reference: l.stored(large)}, ""},
		"room":              {activities.LoadInput{ContextName: "demo", Reference: l.stored(large), Room: 1100}, ""},
		"no room":           {activities.LoadInput{ContextName: "demo", Reference: l.stored(large), Room: 999}, "at most 999): the context has room for 999 bytes (send a short message"},
		"another reference": {activities.LoadInput{ContextName: "demo", Reference: l.stored(references.Active([]byte(`{"driverName":"x"}`)))}, "another reference"},
	} {
		t.Run(name, func(t *testing.T) {
			inActivity(t, func(ctx context.Context) {
				before := l.bucket.Reads()
				loaded, err := l.Load(ctx, test.in)
				if test.error == "" {
					require.NoError(t, err)
					require.True(t, proto.Equal(large, loaded.Payload()))
					return
				}
				require.ErrorContains(t, err, test.error)
				var final *temporal.ApplicationError
				require.ErrorAs(t, err, &final)
				require.True(t, final.NonRetryable())
				if name == "no room" {
					require.Equal(t, 1, l.bucket.Reads()-before, "only the size is read")
				}
			})
		})
	}
}

// heldBucket counts reads of sizes, which wait until it is open.
type heldBucket struct {
	driver.Bucket
	entered chan struct{}
	open    chan struct{}
}

func (b heldBucket) Attributes(context.Context, string) (*driver.Attributes, error) {
	b.entered <- struct{}{}
	<-b.open
	return nil, errors.New("the store is away")
}

func (heldBucket) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.Unknown }
func (heldBucket) ErrorAs(error, any) bool            { return false }
func (heldBucket) Close() error                       { return nil }

func TestAWorkerLoadsEightInputsAtATime(t *testing.T) {
	const atATime, loads = 8, 20
	held := heldBucket{entered: make(chan struct{}, loads), open: make(chan struct{})}
	l := activities.New(activities.Options{Archive: archive.New(blobs.New(blob.NewBucket(held)))})
	in := activities.LoadInput{ContextName: "demo", Reference: []byte(`{"driverName":"chronicle-blobs","claimData":{"ref":"sha256/` + strings.Repeat("0", 64) + `","folder":"blobs/demo/"}}`)}
	inActivity(t, func(ctx context.Context) {
		shutDown, cancel := context.WithCancelCause(ctx)
		ended := make(chan error, loads)
		load := func(ctx context.Context) {
			_, err := l.Load(ctx, in)
			ended <- err
		}
		for range atATime {
			go load(ctx)
		}
		for range atATime {
			<-held.entered
		}
		for range loads - atATime {
			go load(shutDown)
		}
		cancel(worker.ErrWorkerShutdown)
		for range loads - atATime { // the others wait
			require.ErrorIs(t, <-ended, context.Canceled)
		}
		require.Empty(t, held.entered)
		close(held.open)
		for range atATime {
			require.ErrorContains(t, <-ended, "the store is away")
		}
		load(ctx) // there is room again
		require.ErrorContains(t, <-ended, "the store is away")
	})
}
