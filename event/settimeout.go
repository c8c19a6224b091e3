package event

// SetTimeout bounds an attempt and two of its phases. It replaces all settings: absent ones return to their defaults. A new
// context has a timeout of 30,000 ms and no other limits.
//
//doc:effect none; sets timeouts
type SetTimeout struct {
	// From sending the request to the end of the answer, in milliseconds.
	TimeoutMs int64 `json:"timeoutMs" schema:"min=1,max=MaxTimeoutMs"`
	// Until the answer begins, in milliseconds, at most TimeoutMs; absent: no separate limit.
	FirstTokenMs *int64 `json:"firstTokenMs,omitempty" schema:"min=1,max=MaxTimeoutMs"`
	// The longest silence within the answer, in milliseconds, at most TimeoutMs; absent: no separate limit.
	StallMs *int64 `json:"stallMs,omitempty" schema:"min=1,max=MaxTimeoutMs"`
}

// MaxTimeoutMs is a day.
const MaxTimeoutMs = 24 * 60 * 60 * 1000

const TagSetTimeout Tag = "SetTimeoutEvent"

func (SetTimeout) Tag() Tag { return TagSetTimeout }

func (b SetTimeout) validate() error {
	if err := between("timeoutMs", b.TimeoutMs, 1, MaxTimeoutMs); err != nil {
		return err
	}
	// A longer timeout than that of the whole attempt would never fire.
	if ms := b.FirstTokenMs; ms != nil {
		if err := between("firstTokenMs", *ms, 1, b.TimeoutMs); err != nil {
			return err
		}
	}
	if ms := b.StallMs; ms != nil {
		return between("stallMs", *ms, 1, b.TimeoutMs)
	}
	return nil
}

// String describes the timeouts: "1m0s, first token within 10s".
func (s SetTimeout) String() string {
	text := milliseconds(s.TimeoutMs)
	if s.FirstTokenMs != nil {
		text += ", first token within " + milliseconds(*s.FirstTokenMs)
	}
	if s.StallMs != nil {
		text += ", stall timeout " + milliseconds(*s.StallMs)
	}
	return text
}

func (b SetTimeout) Words() (subject, text string) { return "set timeout", b.String() }
func (SetTimeout) Setting() string                 { return "Timeout" }

func (SetTimeout) example() Body {
	return SetTimeout{TimeoutMs: 60_000, FirstTokenMs: new(int64(10_000)), StallMs: new(int64(5_000))}
}
