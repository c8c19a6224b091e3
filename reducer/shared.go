package reducer

import "sync/atomic"

// shared is a list whose array successive states share: appending to a state of length n
// usually writes element n of its array and leaves the state itself valid. Copying the list
// instead would make a fold of n events take quadratic time and memory.
//
// Only one successor of a state may use element n; any other must copy the list. Therefore
// the last element of an array is reserved and counts the free elements before it. The
// successor that decrements the count by compare-and-swap owns the next element, so
// concurrent folds of one state are safe. A shorter view of an array has more free elements
// than the count and copies; so does an array without a count, such as a decoded one.
type shared[T any, E element[T]] []T

// element is a pointer to a list element that can hold the count of free elements.
type element[T any] interface {
	*T
	free() *int32
}

// append returns the list with an item, in the same array if possible. A copy has room for
// spare more items.
func (s shared[T, E]) append(item T, spare int) (list shared[T, E], isCopy bool) {
	free := int32(cap(s) - len(s) - 1)
	isCopy = free <= 0 || !atomic.CompareAndSwapInt32(s.count(), free, free-1)
	if isCopy {
		s = s.clone(spare + 1)
		*s.count() = int32(spare)
	}
	return append(s, item), isCopy
}

// clone copies the list to a new array with room for spare more items.
func (s shared[T, E]) clone(spare int) shared[T, E] {
	copied := make(shared[T, E], len(s), len(s)+spare+1)
	copy(copied, s)
	*copied.count() = int32(spare)
	return copied
}

func (s shared[T, E]) count() *int32 {
	all := s[:cap(s)]
	return E(&all[len(all)-1]).free()
}
