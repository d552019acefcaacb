package activities

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/picture"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
)

// How much one request has at most. Providers take 20 to 50 MB, encoded in base64 and with
// everything else; more than 20 images they take only if these are small.
const (
	maxRequestFiles  = 12 << 20
	maxRequestImages = 20
	maxTextFile      = 256 << 10 // of a file that is sent as text
)

// filesFor returns the messages as a model takes them, and the bytes of their files. A file
// of text is sent as text, and an image that the model doesn't take as a copy that it takes.
// Another file becomes a text that says so, and so do the oldest ones where the files of a
// conversation are too much for one request. That is no error: the conversation goes on, also
// with a model that takes less.
func (d *Activities) filesFor(ctx context.Context, info model.Info, messages []agent.Message) ([]agent.Message, map[string][]byte, error) {
	if !haveFiles(messages) {
		return messages, nil, nil
	}
	r := &requestFiles{log: d.Log, pictures: cmp.Or(d.Pictures, &Pictures{}), inResults: info.ResultFiles, takes: picture.Bounds{Files: info.Files, Side: info.MaxImageSide}, files: map[string][]byte{}, room: maxRequestFiles, images: maxRequestImages}
	out := slices.Clone(messages)
	for i, m := range slices.Backward(messages) { // the newest first
		if len(m.Files()) == 0 {
			continue
		}
		if m.Note == agent.NoteSummary {
			out[i].Parts = onlyNamed(m.Parts)
			continue
		}
		var err error
		if out[i].Parts, err = r.message(ctx, m.Parts); err != nil {
			return nil, nil, err
		}
	}
	return out, r.files, nil
}

// Pictures caches copies of images. The zero value is empty. It is safe for concurrent use.
type Pictures = picture.Cache

func haveFiles(messages []agent.Message) bool {
	return slices.ContainsFunc(messages, func(m agent.Message) bool { return len(m.Files()) > 0 })
}

// requestFiles are the files of one request.
type requestFiles struct {
	log      *store.Log
	pictures *picture.Cache
	takes    picture.Bounds
	files    map[string][]byte // by digest
	room     int               // in bytes
	images   int               // that may still be read

	inResults []string // [model.Info.ResultFiles]
}

// message returns the parts of a message as the model gets them. Files of results that the model
// takes only from a user follow all results.
func (r *requestFiles) message(ctx context.Context, in []agent.Part) ([]agent.Part, error) {
	var out, after []agent.Part
	for _, p := range in {
		var parts, more []agent.Part
		var err error
		if p.Result != nil {
			parts, more, err = r.result(ctx, *p.Result, len(after)/2)
		} else {
			parts, err = r.parts(ctx, p)
		}
		if err != nil {
			return nil, err
		}
		out, after = append(out, parts...), append(after, more...)
	}
	return append(out, after...), nil
}

// result returns a result as the model gets it, and what follows the results. n is how many files
// follow them already.
func (r *requestFiles) result(ctx context.Context, result agent.ToolResult, n int) (parts, after []agent.Part, err error) {
	all, room := result.Files, maxResult
	result.Files = nil
	for _, p := range all {
		if p.File == nil { // of a log that was imported
			continue
		}
		if isText(p.File) {
			if room -= p.File.Size; room < 0 { // as the text of a result is bounded
				result.Text = joined(result.Text, lacking(p.File, "it is too large for you to read"), p.Text)
				continue
			}
		}
		shown, line, err := r.add(ctx, p.File)
		if err != nil {
			return nil, nil, err
		}
		file := agent.Part{Type: agent.PartFile, File: shown}
		switch {
		case line != "":
		// Anthropic refuses a failed result that is more than text.
		case result.Status == agent.CallOK && slices.Contains(r.inResults, shown.MediaType):
			line = fileLine(p.File)
			result.Files = append(result.Files, file)
		default:
			n++
			line = lacking(p.File, fmt.Sprintf("it follows as file %d", n))
			// Without the name, which the tool chose: these are a user's words.
			after = append(after, agent.Part{Type: agent.PartText, Text: fmt.Sprintf("[file %d, from a call of %s]", n, result.Tool)}, file)
		}
		result.Text = joined(result.Text, line, p.Text)
	}
	return []agent.Part{{Type: agent.PartToolResult, Result: &result}}, after, nil
}

// joined returns texts that are not blank, each on lines of its own.
func joined(texts ...string) string {
	texts = slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
	return strings.Join(texts, "\n")
}

// parts returns a part of a message as the model gets it: a file, its name before it, and what was
// said of it after it.
func (r *requestFiles) parts(ctx context.Context, p agent.Part) ([]agent.Part, error) {
	if p.File == nil {
		return []agent.Part{p}, nil
	}
	shown, instead, err := r.add(ctx, p.File)
	if err != nil {
		return nil, err
	}
	out := []agent.Part{{Type: agent.PartText, Text: cmp.Or(instead, fileLine(p.File))}}
	if instead == "" {
		file := p
		file.Text, file.File = "", shown
		out = append(out, file)
	}
	if strings.TrimSpace(p.Text) != "" {
		out = append(out, agent.Part{Type: agent.PartText, Text: p.Text})
	}
	return out, nil
}

// add reads a file that the model takes, or makes a copy that it takes. Otherwise it returns the
// text that is sent instead.
func (r *requestFiles) add(ctx context.Context, f *agent.File) (shown *agent.File, instead string, err error) {
	most, takes := r.takes.Files[f.MediaType]
	asText := isText(f)
	image := f.IsImage() && !asText
	switch {
	case !takes && !asText && !(image && r.takes.Take(f.MediaType)):
		return nil, lacking(f, "you can't read files of this type"), nil
	case takes && !image && f.Size > most, asText && f.Size > maxTextFile:
		return nil, lacking(f, "it is too large for you to read"), nil
	// Also for one that is shown again: it is sent again. How large an image will be is not known yet.
	case !image && f.Size > r.room, image && r.images == 0:
		return nil, lacking(f, leftOutFile), nil
	case image:
		r.images--
	}
	data, there := r.files[f.Digest]
	if !there {
		// Patiently, as the log is read: a slow store must not use up the call's attempts.
		err = patiently(ctx, func() (err error) { data, err = r.log.File(ctx, f); return err })
	}
	switch {
	case errors.Is(err, agent.CodeChunkMissing):
		return nil, lacking(f, "it was deleted"), nil
	case errors.Is(err, agent.CodeChunkDamaged):
		return nil, lacking(f, "it is damaged"), nil
	case err != nil:
		return nil, "", err
	case !asText && !f.Fits(data):
		return nil, lacking(f, "its bytes are not of this type"), nil
	case image:
		return r.addImage(ctx, f, data)
	}
	r.room -= len(data)
	if asText {
		return nil, textFile(f, data), nil
	}
	r.files[f.Digest] = data
	return f, "", nil
}

const leftOutFile = "it is left out, since newer files need the room"

// addImage adds an image, or a copy that is smaller or of another type: the model refuses others,
// and with them the conversation.
func (r *requestFiles) addImage(ctx context.Context, f *agent.File, data []byte) (shown *agent.File, instead string, err error) {
	// The session is part of the name: nobody learns from the time whether another one has the image.
	fit, err := r.pictures.Fit(ctx, f.Session+" "+f.Digest, picture.Image{Data: data, MediaType: f.MediaType}, r.takes)
	if why, ok := errors.AsType[picture.Unfit](err); ok {
		return nil, lacking(f, string(why)), nil
	}
	if err != nil {
		return nil, "", err
	}
	if len(fit.Data) > r.room {
		r.images = 0 // older ones would be read and left out in each turn, too
		return nil, lacking(f, leftOutFile), nil
	}
	whole := *f
	if !bytes.Equal(fit.Data, data) {
		sum := sha256.Sum256(fit.Data)
		whole.Digest, whole.Size, whole.MediaType = hex.EncodeToString(sum[:]), len(fit.Data), fit.MediaType
	}
	r.room -= whole.Size
	r.files[whole.Digest] = fit.Data
	return &whole, "", nil
}

// isText reports whether every model can read a file as text.
func isText(f *agent.File) bool {
	return strings.HasPrefix(f.MediaType, "text/") || slices.Contains([]string{"application/json", "application/yaml", "image/svg+xml"}, f.MediaType)
}

func textFile(f *agent.File, data []byte) string {
	if !utf8.Valid(data) {
		return lacking(f, "it is not written in UTF-8")
	}
	return fmt.Sprintf("%s\n%s", fileLine(f), data)
}

// fileLine names a file to a model that gets it. The original names it, also where a copy is sent:
// what a file is called must not depend on the model.
func fileLine(f *agent.File) string { return fmt.Sprintf("[%s]", f) }

// lacking says to a model what it can't see.
func lacking(f *agent.File, why string) string {
	return fmt.Sprintf("[%s: %s]", f, why)
}

// withoutFiles returns messages with their files in words, for a model that has refused them: one may
// be broken, or more than the provider takes, and would make it refuse the conversation for ever.
func withoutFiles(messages []agent.Message) []agent.Message {
	out := slices.Clone(messages)
	for i, m := range messages {
		if len(m.Files()) == 0 {
			continue
		}
		if m.Note == agent.NoteSummary {
			out[i].Parts = onlyNamed(m.Parts)
			continue
		}
		out[i].Parts = slices.Clone(m.Parts)
		for j, p := range m.Parts {
			if p.File != nil {
				out[i].Parts[j] = agent.Part{Type: agent.PartText, Text: unread(p)}
			}
			if p.Result != nil && len(p.Result.Files) > 0 {
				r := *p.Result
				for _, f := range r.Files {
					if f.File != nil {
						r.Text = joined(r.Text, unread(f))
					}
				}
				r.Files, out[i].Parts[j].Result = nil, &r
			}
		}
	}
	return out
}

func unread(p agent.Part) string { return joined(lacking(p.File, "you could not read it"), p.Text) }

// refused reports whether a provider refused a request as a wrong one. A reply that was too long is
// no refusal.
func refused(err error) bool {
	var e *agent.Error
	return errors.As(err, &e) && e.Provider != nil && e.Provider.Kind == agent.FaultBadRequest && !errors.Is(err, agent.CodeBadOutput)
}
