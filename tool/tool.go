package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/schema"
)

// Bounds of the options.
const (
	MaxTimeout       = 24 * time.Hour // of [Timeout]
	MaxAttempts      = 10             // of [Attempts]
	DefaultMaxResult = 32 << 10       // of [MaxResult], in bytes
	MinMaxResult     = 1 << 10        // of [MaxResult], in bytes
	MaxMaxResult     = 256 << 10      // of [MaxResult], in bytes
)

// Tool is a function that models may call. Create it with [New].
type Tool struct {
	spec      activities.Tool
	maxResult int
	schema    *argumentsSchema
	call      func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// Spec describes the tool to workers and models.
func (t Tool) Spec() activities.Tool { return t.spec }

// Option configures a [Tool].
type Option func(*Tool)

// Timeout bounds a call: 1 ms to [MaxTimeout]. Default: [activities.DefaultToolTimeout].
func Timeout(timeout time.Duration) Option { return func(t *Tool) { t.spec.Timeout = timeout } }

// Idempotent means that a repeated call with the same [CallID] has no further effect. If the worker
// dies during a call, another one repeats it. Without this option, the model is told that the
// outcome is unknown.
func Idempotent() Option { return func(t *Tool) { t.spec.Idempotent = true } }

// Attempts is the maximum number of attempts of a call that returns a [Retryable] error: 1, the
// default, to [MaxAttempts]. More than one requires [Idempotent].
func Attempts(attempts int) Option { return func(t *Tool) { t.spec.Attempts = attempts } }

// MaxResult is the size in bytes up to which the model receives the whole result: [MinMaxResult] to
// [MaxMaxResult]. Default: [DefaultMaxResult].
func MaxResult(bytes int) Option { return func(t *Tool) { t.maxResult = bytes } }

// Parameters replaces the JSON Schema of the input type, which may then be [json.RawMessage].
// The names of fields are case-sensitive.
func Parameters(schema event.Object) Option { return func(t *Tool) { t.spec.Parameters = schema } }

// Canonical is the name in event.SetTools. Default: the name for models.
func Canonical(name string) Option { return func(t *Tool) { t.spec.Canonical = name } }

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) // accepted by all providers

// New returns a tool that calls a function. The name is 1 to 64 of A-Z a-z 0-9 _ -, and the
// description must not be empty. In is a struct, or a map with string keys. The model receives a
// string result as it is, any other value as JSON.
func New[In, Out any](name, description string, function func(ctx context.Context, in In) (Out, error), options ...Option) (Tool, error) {
	t := Tool{
		spec:      activities.Tool{Canonical: name, Timeout: activities.DefaultToolTimeout, Attempts: 1},
		maxResult: DefaultMaxResult,
		call: func(ctx context.Context, arguments json.RawMessage) (any, error) {
			var in In
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, fmt.Errorf("invalid arguments: %w", err)
			}
			return function(ctx, in)
		},
	}
	t.spec.Name, t.spec.Description = name, description
	for _, option := range options {
		option(&t)
	}
	inferred, err := parametersOf(reflect.TypeFor[In]())
	if t.spec.Parameters == nil {
		t.spec.Parameters = inferred
	} else if err != nil {
		inferred, err = t.spec.Parameters, nil
	}
	if err == nil {
		err = t.validate()
	}
	if err == nil {
		t.schema, err = compile(t.spec.Parameters, inferred)
	}
	if err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", name, err)
	}
	return t, nil
}

// Withheld returns a tool of a [Source] that cannot be offered, for the log of the context. Models and callers do not
// find it.
func Withheld(canonical, reason string) Tool {
	return Tool{spec: activities.Tool{Canonical: canonical, Withheld: reason}}
}

// Must returns t, or panics if err is not nil. It is for tools in package variables.
func Must(t Tool, err error) Tool {
	if err != nil {
		panic(err)
	}
	return t
}

func (t Tool) validate() error {
	switch {
	case !namePattern.MatchString(t.spec.Name):
		return errors.New("invalid name (1 to 64 of A-Z a-z 0-9 _ -)")
	case t.spec.Canonical == "":
		return errors.New("the canonical name is missing")
	case t.spec.Description == "":
		return errors.New("the description is missing (models choose tools by it)")
	case len(t.spec.Description) > event.MaxDescriptionBytes:
		return fmt.Errorf("a description of %d bytes is out of range (at most %d)", len(t.spec.Description), event.MaxDescriptionBytes)
	case len(t.spec.Parameters) > event.MaxSchemaBytes:
		return fmt.Errorf("parameters of %d bytes are out of range (at most %d)", len(t.spec.Parameters), event.MaxSchemaBytes)
	case t.spec.Timeout < time.Millisecond || t.spec.Timeout > MaxTimeout:
		return fmt.Errorf("timeout %v is out of range (1ms to %v)", t.spec.Timeout, MaxTimeout)
	case t.spec.Attempts < 1 || t.spec.Attempts > MaxAttempts:
		return fmt.Errorf("%d attempts are out of range (1 to %d)", t.spec.Attempts, MaxAttempts)
	case t.spec.Attempts > 1 && !t.spec.Idempotent:
		return fmt.Errorf("%d attempts require the option Idempotent", t.spec.Attempts)
	case t.maxResult < MinMaxResult || t.maxResult > MaxMaxResult:
		return fmt.Errorf("a maximum result of %d bytes is out of range (%d to %d)", t.maxResult, MinMaxResult, MaxMaxResult)
	}
	return nil
}

// argumentsSchema checks arguments. It is safe for concurrent use.
type argumentsSchema struct {
	mu            sync.Mutex
	schema, names *schema.Schema // names declares the fields that the function reads
}

func compile(parameters, inferred event.Object) (*argumentsSchema, error) {
	if err := schema.IsObject(string(parameters)); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	compiled, err := schema.CompileParameters(parameters)
	if err != nil {
		return nil, fmt.Errorf("parameters: invalid JSON Schema: %w", err)
	}
	names, err := schema.CompileParameters(inferred)
	if err != nil {
		return nil, fmt.Errorf("input type: %w", err)
	}
	return &argumentsSchema{schema: compiled, names: names}, nil
}

func (s *argumentsSchema) check(arguments json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.schema.Check(string(arguments))
	// Names match exactly, as in approval rules; encoding/json would ignore their case.
	for _, declared := range []*schema.Schema{s.schema, s.names} {
		if err == nil {
			err = declared.CheckNames(string(arguments))
		}
	}
	if err != nil {
		return fmt.Errorf("invalid arguments: %w", err)
	}
	return nil
}
