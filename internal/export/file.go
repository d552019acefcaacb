package export

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Limits of what is kept of a file in memory, in bytes. A state goes through a history,
// where a payload may have 2 MB.
const (
	maxState    = 1536 << 10
	maxEnvelope = 8 << 20
	maxChunk    = 32 << 20 // of one chunk's line; our chunks have about 1 MB
)

// trailer is the last line.
type trailer struct {
	File string `json:"file"`
}

// trailerSize is the length of the last line, which is always the same.
const trailerSize = int64(len(`{"file":""}`) + 2*ed25519.SignatureSize + 1)

// Write writes a file: the content, which it signs, and the chunks. It returns the number
// of chunks. Errors are those of [Seal], of the chunks and of the writer.
func Write(w io.Writer, c Content, key signals.Signer, chunks iter.Seq2[store.Packed, error]) (n int, err error) {
	first, err := Seal(c, key)
	if err != nil {
		return 0, err
	}
	hash := sha512.New()
	out := bufio.NewWriter(w)
	signed := io.MultiWriter(out, hash)
	_, err = signed.Write(append(first, '\n'))
	for p, broken := range chunks {
		if err = errors.Join(err, broken); err != nil {
			return n, err
		}
		if err = writeLine(signed, p); err != nil {
			return n, err
		}
		n++
	}
	if err == nil {
		var signature []byte
		if signature, err = key.Sign(filePurpose, hash.Sum(nil)); err == nil {
			err = writeLine(out, trailer{hex.EncodeToString(signature)})
		}
	}
	return n, errors.Join(err, out.Flush())
}

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return agent.Errorf(agent.CodeInternal, "encoding an export: %w", err)
	}
	if len(line) > maxChunk {
		return agent.Errorf(agent.CodeTooLarge, "a part of the session has %d bytes; an export takes at most %d", len(line), maxChunk)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// File is an export whose signatures were verified.
type File struct {
	Content
	// Envelope is the first line, for [Open].
	Envelope []byte
	from     io.ReadSeeker
}

// Read verifies a whole file before anything of it is used. It keeps only the envelope in
// memory. Errors are those of [Open], and of the reader.
func Read(r io.ReadSeeker, keys signals.Keys) (*File, error) {
	f := &File{from: r}
	in, size, err := f.start()
	if err != nil {
		return nil, err
	}
	// The envelope first: a forged one is refused before the whole file is read.
	if f.Envelope, err = readLine(in, maxEnvelope); err != nil {
		return nil, err
	}
	if f.Content, err = Open(f.Envelope, keys); err != nil {
		return nil, err
	}
	hash := sha512.New()
	hash.Write(f.Envelope)
	hash.Write([]byte{'\n'})
	rest := size - int64(len(f.Envelope)) - 1 - trailerSize
	if rest < 0 {
		return nil, bad()
	}
	if _, err := io.CopyN(hash, in, rest); err != nil {
		return nil, unreadable(err)
	}
	last, err := io.ReadAll(io.LimitReader(in, trailerSize+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if !signedBy(keys, f.Key, last, hash.Sum(nil)) {
		return nil, bad()
	}
	return f, nil
}

// signedBy reports whether the last line is exactly as we write it, and signs what comes
// before it. sum is the SHA-512 of that.
func signedBy(keys signals.Keys, key string, last, sum []byte) bool {
	var t trailer
	if json.Unmarshal(last, &t) != nil {
		return false
	}
	signature, err := hex.DecodeString(t.File)
	if err != nil {
		return false
	}
	ours, err := json.Marshal(trailer{hex.EncodeToString(signature)}) // in lower case, without blanks
	return err == nil && bytes.Equal(last, append(ours, '\n')) && keys.Verified(key, filePurpose, sum, signature)
}

// start seeks to the beginning of the file.
func (f *File) start() (in *bufio.Reader, size int64, err error) {
	if size, err = f.from.Seek(0, io.SeekEnd); err == nil {
		_, err = f.from.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, unreadable(err)
	}
	return bufio.NewReaderSize(f.from, 64<<10), size, nil
}

func unreadable(err error) error {
	return agent.Errorf(agent.CodeInvalidInput, "the export can't be read: %w", err)
}

// Chunks returns the chunks in the file's order. Each is checked against its digest,
// which the head or the chunk before it names. An error ends the list: the file was
// changed since it was verified, or the disk fails.
func (f *File) Chunks() iter.Seq2[store.Packed, error] {
	return func(yield func(store.Packed, error) bool) {
		in, _, err := f.start()
		if err == nil {
			_, err = readLine(in, maxEnvelope)
		}
		for s := f.Sequence(); s.Next() != "" && err == nil; {
			var p store.Packed
			if p, err = chunk(in, s); err == nil && !yield(p, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Packed{}, err)
		}
	}
}

// chunk reads the next chunk of a sequence.
func chunk(in *bufio.Reader, s *store.Sequence) (p store.Packed, err error) {
	line, err := readLine(in, maxChunk)
	if err != nil {
		return p, err
	}
	if json.Unmarshal(line, &p) != nil || p.Digest != s.Next() {
		return p, bad()
	}
	if err = s.Take(p.Data); errors.Is(err, agent.CodeChunkDamaged) {
		err = bad()
	}
	return p, err
}

// readLine reads a line of limited length, without its end.
func readLine(in *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > most {
			return nil, agent.Errorf(agent.CodeInvalidInput, "import refused: a line has more than %d bytes; this is no export of fermata", most)
		}
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF):
			return line, nil // a line that is cut off fails its checks later
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, unreadable(err)
		}
	}
}
