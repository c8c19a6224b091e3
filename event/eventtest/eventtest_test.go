package eventtest_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

// Every field is sometimes set and, if it is optional, sometimes not. Every value of an enumeration occurs.
func TestGeneratedBodiesCoverEveryField(t *testing.T) {
	wanted := map[string]bool{}
	for _, body := range event.Examples() {
		want(wanted, string(body.Tag()), reflect.TypeOf(body))
	}
	for seed := 0; seed < 100_000 && len(wanted) > 0; seed++ {
		body := eventtest.Body().Example(seed)
		require.NoError(t, event.New(body).Validate())
		remove(wanted, string(body.Tag()), reflect.ValueOf(body))
	}
	require.Empty(t, wanted)
}

// remove removes what a value shows: which fields are set, and the values of enumerations.
func remove(wanted map[string]bool, place string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			remove(wanted, place, value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			remove(wanted, place, value.Index(i))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			inner := place + "." + value.Type().Field(i).Name
			delete(wanted, fmt.Sprint(inner, " is set: ", !value.Field(i).IsZero()))
			remove(wanted, inner, value.Field(i))
		}
	case reflect.String:
		delete(wanted, place+" is "+value.String())
	}
}

// want adds what values of a type must show.
func want(wanted map[string]bool, place string, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		want(wanted, place, t.Elem())
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[event.Event]().PkgPath() {
			return
		}
		for i := range t.NumField() {
			field, inner := t.Field(i), place+"."+t.Field(i).Name
			wanted[inner+" is set: true"] = true
			if field.Type.Kind() == reflect.Pointer {
				wanted[inner+" is set: false"] = true
			}
			want(wanted, inner, field.Type)
		}
	case reflect.String:
		if values := reflect.Zero(t).MethodByName("Values"); values.IsValid() {
			for _, value := range values.Call(nil)[0].Seq2() {
				wanted[place+" is "+value.String()] = true
			}
		}
	}
}
