package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

// runImportConversations imports one or all conversations of an export of ChatGPT.
func runImportConversations(ctx context.Context, o importOptions) error {
	switch {
	case o.all && o.conversation != "":
		return usagef("--all: cannot be used with --conversation")
	case o.all && o.name != "":
		return usagef("--all: cannot be used with --name (contexts are named after titles and ids)")
	case o.name != "":
		if err := checkName(o.name); err != nil {
			return err
		}
	}
	file, err := o.input()
	if err != nil {
		return err
	}
	defer file.Close()
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	conversations := chat.Conversations(file)
	if o.all {
		return o.importAll(ctx, c, conversations)
	}
	return o.importOne(ctx, c, conversations)
}

func (o importOptions) importOne(ctx context.Context, c contextClient, conversations iter.Seq2[chat.Conversation, error]) error {
	var found []chat.Conversation
	read := 0
	for conversation, err := range conversations {
		if err != nil {
			return fmt.Errorf("read %s: %w", o.file, err)
		}
		read++
		if conversation.ID == o.conversation {
			found = []chat.Conversation{conversation}
			break
		}
		if strings.EqualFold(conversation.Title, o.conversation) {
			found = append(found, conversation)
		}
	}
	switch len(found) {
	case 0:
		return fmt.Errorf("--conversation %q: not among the %s of %s", o.conversation, count(read, "conversation"), o.file)
	case 1:
		to, err := c.Open(cmp.Or(o.name, found[0].ContextName()))
		if err != nil {
			return err
		}
		return o.importLog(ctx, to, found[0].Log(to.Name(), time.Now()))
	}
	var ids []string
	for _, conversation := range found {
		ids = append(ids, conversation.ID)
	}
	return fmt.Errorf("--conversation %q: %d conversations have this title (want an id: %s)", o.conversation, len(found), strings.Join(ids, ", "))
}

// importAll skips contexts that exist, and conversations that are empty or invalid.
func (o importOptions) importAll(ctx context.Context, c contextClient, conversations iter.Seq2[chat.Conversation, error]) error {
	done, exist, empty, failed := 0, 0, 0, 0
	var unreadable error
	for conversation, err := range conversations {
		if err != nil {
			unreadable = err
			break
		}
		to, err := c.Open(conversation.ContextName())
		if err != nil {
			return err
		}
		err = o.importLog(ctx, to, conversation.Log(to.Name(), time.Now()))
		switch {
		case err == nil:
			done++
		case errors.Is(err, chat.ErrNoMessages):
			empty++
		case errors.Is(err, client.ErrExists):
			exist++
		case ctx.Err() != nil || endsImport(err):
			return err
		default:
			failed++
			fmt.Fprintf(o.err, "starter: %v\n", err)
		}
	}
	if exist > 0 {
		o.note("skipped %s", count(exist, "existing context"))
	}
	if empty > 0 {
		o.note("skipped %s", count(empty, "empty conversation"))
	}
	if unreadable != nil && done+exist > 0 {
		unreadable = fmt.Errorf("%w (correct the file there and repeat the command: it skips the contexts that exist)", unreadable)
	}
	if unreadable != nil {
		return fmt.Errorf("read %s: %w", o.file, unreadable)
	}
	if failed > 0 {
		return fmt.Errorf("import %s: %s not imported", o.file, count(failed, "conversation"))
	}
	return nil
}

// endsImport reports whether an error is not about a conversation.
func endsImport(err error) bool {
	return slices.ContainsFunc([]error{client.ErrUnreachable, client.ErrNoArchive, client.ErrOtherStore, client.ErrStoreUnavailable},
		func(target error) bool { return errors.Is(err, target) })
}
