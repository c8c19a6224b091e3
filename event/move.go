package event

import (
	"reflect"
	"slices"
	"strings"
)

// MovedTo returns the event in another context. Ids of events and requests of the old context
// are renamed and keep their counters. Ids of other contexts and [Event.Extra] do not change.
func (e Event) MovedTo(contextName string) Event {
	from := e.ContextName
	_, e.ContextName = CutTenant(contextName)
	return e.MapIDs(func(id string) string {
		if n := Counter(id); n > 0 && id == FormatID(from, n) {
			return FormatID(contextName, n)
		}
		if n := RequestNumber(id); n > 0 && id == FormatRequestID(from, n) {
			return FormatRequestID(contextName, n)
		}
		return id
	})
}

// MapIDs applies f to each nonempty id of an event or request, including ID and ParentID, but not to
// the origin of a fork.
func (e Event) MapIDs(f func(id string) string) Event {
	mapped := func(id string) string {
		if id == "" {
			return ""
		}
		return f(id)
	}
	e.ID, e.ParentID = mapped(e.ID), mapped(e.ParentID)
	if ids := lookup(e.Tag()).ids; ids != nil {
		body := copyOf(reflect.ValueOf(e.Body))
		ids(body, mapped)
		e.Body = body.Interface().(Body)
	}
	return e
}

// idMapper applies f to the ids in a value, which is addressable and shares no memory with the event.
type idMapper func(value reflect.Value, f func(string) string)

// idMapperOf returns nil for a type without ids. In structs, they have the option id in the tag "schema".
func idMapperOf(t reflect.Type) idMapper {
	switch t.Kind() {
	case reflect.Struct:
		return idMapperOfStruct(t)
	case reflect.Pointer:
		if inner := idMapperOf(t.Elem()); inner != nil {
			return func(value reflect.Value, f func(string) string) {
				if !value.IsNil() {
					value.Set(copyOf(value.Elem()).Addr())
					inner(value.Elem(), f)
				}
			}
		}
	case reflect.Slice:
		if inner := idMapperOf(t.Elem()); inner != nil {
			return func(value reflect.Value, f func(string) string) {
				value.Set(reflect.AppendSlice(reflect.Zero(t), value))
				for i := range value.Len() {
					inner(value.Index(i), f)
				}
			}
		}
	}
	return nil
}

func idMapperOfStruct(t reflect.Type) idMapper {
	fields := map[int]idMapper{}
	for i := range t.NumField() {
		if slices.Contains(strings.Split(t.Field(i).Tag.Get("schema"), ","), "id") {
			fields[i] = func(value reflect.Value, f func(string) string) { value.SetString(f(value.String())) }
		} else if inner := idMapperOf(t.Field(i).Type); inner != nil {
			fields[i] = inner
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return func(value reflect.Value, f func(string) string) {
		for i, mapField := range fields {
			mapField(value.Field(i), f)
		}
	}
}

func copyOf(value reflect.Value) reflect.Value {
	copied := reflect.New(value.Type()).Elem()
	copied.Set(value)
	return copied
}
