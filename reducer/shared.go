package reducer

import "sync/atomic"

// shared is a list whose array successive states share: appending to a state of length n usually
// writes element n and leaves the state valid. Copying would make a fold of n events quadratic.
// Only one successor may use element n; others copy. The last element of an array is reserved to
// count the free elements before it. The successor that decrements this count by compare-and-swap
// owns the next element, so concurrent folds are safe. Appending copies if the list is a shorter view,
// which has more free elements than the count, or was decoded from JSON and has no count.
type shared[T any, E element[T]] []T

// element is a pointer to an element that can hold the count of free elements.
type element[T any] interface {
	*T
	free() *int32
}

// append uses the same array if possible. A copy has room for spare more items.
func (s shared[T, E]) append(item T, spare int) (list shared[T, E], isCopy bool) {
	free := int32(cap(s) - len(s) - 1)
	isCopy = free <= 0 || !atomic.CompareAndSwapInt32(s.count(), free, free-1)
	if isCopy {
		s = s.clone(spare + 1)
		*s.count() = int32(spare)
	}
	return append(s, item), isCopy
}

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
