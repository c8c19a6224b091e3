package activities

import (
	"fmt"
	"math/bits"
	"os"
)

// parking keeps packed sessions in one temporary file, which has no name once it
// is open, so that a killed process leaves nothing behind. It is not safe for
// concurrent use.
type parking struct {
	file *os.File // nil before the first write
	end  int64
	// vacant are the offsets of regions that were freed, by the power of two
	// that is their size.
	vacant map[int][]int64
}

// region is where a session is.
type region struct {
	offset int64
	class  int // its size is 1<<class
	length int
}

func (p *parking) write(data []byte) (*region, error) {
	if p.file == nil {
		file, err := OpenSpillFile()
		if err != nil {
			return nil, err
		}
		p.file, p.vacant = file, map[int][]int64{}
	}
	r := &region{class: bits.Len(uint(len(data))), length: len(data)}
	if vacant := p.vacant[r.class]; len(vacant) > 0 {
		r.offset = vacant[len(vacant)-1]
		p.vacant[r.class] = vacant[:len(vacant)-1]
	} else {
		r.offset = p.end
		p.end += 1 << r.class
	}
	if _, err := p.file.WriteAt(data, r.offset); err != nil {
		p.free(r)
		return nil, fmt.Errorf("park a session: %w", err)
	}
	return r, nil
}

func (p *parking) read(r *region) ([]byte, error) {
	data := make([]byte, r.length)
	if _, err := p.file.ReadAt(data, r.offset); err != nil {
		return nil, fmt.Errorf("read a parked session: %w", err)
	}
	return data, nil
}

func (p *parking) free(r *region) { p.vacant[r.class] = append(p.vacant[r.class], r.offset) }

// OpenSpillFile opens the temporary file of parked sessions. The file has no name
// where the system allows that.
func OpenSpillFile() (*os.File, error) {
	file, err := os.CreateTemp("", "chronicle-sessions-")
	if err != nil {
		return nil, fmt.Errorf("open the file for parked sessions: %w (set TMPDIR to a writable directory)", err)
	}
	_ = os.Remove(file.Name()) // an open file cannot be removed everywhere
	return file, nil
}
