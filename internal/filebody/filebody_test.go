package filebody

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The body that is sent has the files in base64, and is otherwise what was written. Texts that look
// like a file stay texts.
func TestSend(t *testing.T) {
	a, b, gone := strings.Repeat("a", digestSize), strings.Repeat("b", digestSize), strings.Repeat("c", digestSize)
	files := New(map[string][]byte{a: []byte("\x89PNG"), b: bytes.Repeat([]byte{0xff}, 4000)})
	other := New(map[string][]byte{a: []byte("\x89PNG")})
	sent := []string{"data:image/png;base64," + files.Base64(a), files.Base64(b), files.Base64(a), files.Base64(gone), files.Base64("a"), "<&> é", other.Base64(a)}
	body, err := json.Marshal(sent)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	_, err = files.Send(r, func(r *http.Request) (*http.Response, error) {
		again, err := r.GetBody()
		require.NoError(t, err)
		for _, one := range []io.Reader{r.Body, again} {
			whole, err := io.ReadAll(one)
			require.NoError(t, err)
			require.EqualValues(t, len(whole), r.ContentLength)
			var got []string
			require.NoError(t, json.Unmarshal(whole, &got))
			require.Equal(t, []string{"data:image/png;base64,iVBORw==", strings.Repeat("////", 1333) + "/w==", "iVBORw==", "", "", "<&> é", other.Base64(a)}, got)
		}
		return nil, nil
	})
	require.NoError(t, err)
}

// Without files a request is sent as it is, and one whose body can't be read is not sent.
func TestSendOthers(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	body := r.Body
	sent := 0
	next := func(r *http.Request) (*http.Response, error) {
		require.Equal(t, body, r.Body)
		sent++
		return nil, nil
	}
	_, err := New(nil).Send(r, next)
	require.NoError(t, err)
	files := New(map[string][]byte{strings.Repeat("a", digestSize): {1}})
	for _, bad := range []io.Reader{broken{}, strings.NewReader(files.mark + "abc")} {
		_, err = files.Send(httptest.NewRequest(http.MethodPost, "/", bad), next)
		require.ErrorContains(t, err, "writing the files of a request")
	}
	require.Equal(t, 1, sent)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }
