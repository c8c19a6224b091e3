package logging

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Limit is the maximum number of warnings, and of errors, with the same message in each [Interval]. Further
// ones are omitted and counted. One interval after the first omitted line, or at exit, a line with the
// number is logged. Lines with the field "event" are not limited: the log of a context contains each event
// once.
const Limit = 10

// Interval is the time to which the limit applies.
const Interval = time.Minute

const eventField = "event"

// limited limits repeats with the sampler of zap.
type limited struct {
	zapcore.Core
	sampled zapcore.Core
	omitted *omitted
}

func limit(core zapcore.Core) zapcore.Core {
	o := &omitted{to: core, counts: map[repeat]int{}}
	return limited{core, zapcore.NewSamplerWithOptions(core, Interval, Limit, 0, zapcore.SamplerHook(o.count)), o}
}

func (l limited) With(fields []zapcore.Field) zapcore.Core {
	return limited{l.Core.With(fields), l.sampled.With(fields), l.omitted}
}

func (l limited) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !l.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, l)
}

func (l limited) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	isEvent := slices.ContainsFunc(fields, func(field zapcore.Field) bool { return field.Key == eventField })
	if entry.Level >= zap.WarnLevel && !isEvent && l.sampled.Check(entry, nil) == nil {
		return nil
	}
	return l.Core.Write(redacted(entry, fields))
}

func (l limited) Sync() error { return errors.Join(l.omitted.report(), l.Core.Sync()) }

type repeat struct {
	level           zapcore.Level
	logger, message string
}

// omitted counts omitted lines.
type omitted struct {
	to zapcore.Core

	mu     sync.Mutex
	counts map[repeat]int
}

func (o *omitted) count(entry zapcore.Entry, decision zapcore.SamplingDecision) {
	if decision&zapcore.LogDropped == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.counts) == 0 {
		time.AfterFunc(Interval, func() { _ = o.report() }) // there is nowhere to log the error
	}
	o.counts[repeat{entry.Level, entry.LoggerName, entry.Message}]++
}

func (o *omitted) report() error {
	o.mu.Lock()
	counts := o.counts
	o.counts = map[repeat]int{}
	o.mu.Unlock()
	var errs []error
	for _, r := range slices.SortedFunc(maps.Keys(counts), func(a, b repeat) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.logger, b.logger), cmp.Compare(a.message, b.message))
	}) {
		entry := zapcore.Entry{Level: r.level, Time: time.Now(), LoggerName: r.logger, Message: "omitted repeated lines"}
		errs = append(errs, o.to.Write(redacted(entry, []zapcore.Field{zap.String("message", r.message), zap.Int("omitted", counts[r])})))
	}
	return errors.Join(errs...)
}
