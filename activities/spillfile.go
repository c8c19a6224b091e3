package activities

import (
	"fmt"
	"math/bits"
	"os"
)

// spillFile stores packed sessions in one temporary file. Where the system allows it, the file has no name,
// so a killed process leaves nothing behind. It is not safe for concurrent use.
type spillFile struct {
	file *os.File // nil before the first write
	end  int64
	free map[int][]int64 // offsets of free regions, by class
}

type region struct {
	offset int64
	class  int // its size is 1<<class
	length int
}

func (f *spillFile) write(data []byte) (*region, error) {
	if f.file == nil {
		file, err := OpenSpillFile()
		if err != nil {
			return nil, err
		}
		f.file, f.free = file, map[int][]int64{}
	}
	r := &region{class: bits.Len(uint(len(data))), length: len(data)}
	if free := f.free[r.class]; len(free) > 0 {
		r.offset = free[len(free)-1]
		f.free[r.class] = free[:len(free)-1]
	} else {
		r.offset = f.end
		f.end += 1 << r.class
	}
	if _, err := f.file.WriteAt(data, r.offset); err != nil {
		f.release(r)
		return nil, fmt.Errorf("write a session to the spill file: %w", err)
	}
	return r, nil
}

func (f *spillFile) read(r *region) ([]byte, error) {
	data := make([]byte, r.length)
	if _, err := f.file.ReadAt(data, r.offset); err != nil {
		return nil, fmt.Errorf("read a session from the spill file: %w", err)
	}
	return data, nil
}

func (f *spillFile) release(r *region) { f.free[r.class] = append(f.free[r.class], r.offset) }

// OpenSpillFile opens a temporary file for evicted sessions, without a name where possible.
func OpenSpillFile() (*os.File, error) {
	file, err := os.CreateTemp("", "chronicle-sessions-")
	if err != nil {
		return nil, fmt.Errorf("open the spill file of the session cache: %w (set TMPDIR to a writable directory)", err)
	}
	_ = os.Remove(file.Name()) // some systems cannot remove an open file
	return file, nil
}
