package llm_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestMissingAttachmentIsLogged(t *testing.T) {
	var log bytes.Buffer
	options := llm.Options{
		ReadAttachment: func(string) ([]byte, error) { return nil, errors.New("no such file") },
		Logger:         slog.New(slog.NewTextHandler(&log, nil)),
	}
	readBlob := func(context.Context, string) ([]byte, error) {
		return nil, errors.New("no such blob at nats://me:s3cr3t@store")
	}
	model := llmtest.Start(t, llmtest.Answer("Hi"))
	messages := []reducer.Message{user("Look", ref("image/png", "cat.png", "gone"), file("text/plain", "notes.txt"), link("text/plain", "data:;base64,%"))}
	require.NoError(t, sendWith(within(t), model, options, readBlob, reducer.ProviderConfig{}, messages))
	require.Equal(t, 2, bytes.Count(log.Bytes(), []byte("\n")), "an invalid data URL is not logged")
	require.Contains(t, log.String(), `level=WARN msg="cannot read an attachment; sending a note to the model instead" attachment=blob:sha256/gone error="no such blob at nats://[removed]@store"`)
	require.Contains(t, log.String(), `attachment=notes.txt error="no such file"`)
}

func TestReadingABlobEndsWithItsRequest(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(within(t))
	readBlob := func(ctx context.Context, _ string) ([]byte, error) {
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.LessOrEqual(t, time.Until(deadline), llm.BlobTimeout, "the wait for the store is bounded")
		cancel()
		return nil, ctx.Err()
	}
	options := llm.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	err := sendWith(ctx, llmtest.Start(t), options, readBlob, reducer.ProviderConfig{}, []reducer.Message{user("Look", ref("image/png", "cat.png", "cat"))})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, log.String(), "a cancelled read is not logged")
}
