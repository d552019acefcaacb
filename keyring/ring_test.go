package keyring_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

func key(t *testing.T, id string) string {
	text, err := keyring.New(id)
	require.NoError(t, err)
	return text
}

func ring(t *testing.T, list ...string) *keyring.Ring {
	r, err := keyring.Parse(strings.Join(list, ","))
	require.NoError(t, err)
	return r
}

func TestRotation(t *testing.T) {
	k1, k2 := key(t, "k1"), key(t, "k2")
	old, both, turned, fresh := ring(t, k1), ring(t, k1, k2), ring(t, k2, k1), ring(t, k2)

	before := old.Encrypt("chunk/a", []byte("Pay invoice 118"))
	after := turned.Encrypt("chunk/a", []byte("Pay invoice 118"))
	assert.Equal(t, "k1", keyring.KeyID(before))
	assert.Equal(t, "k2", keyring.KeyID(after))
	for _, r := range []*keyring.Ring{both, turned} {
		for _, data := range [][]byte{before, after} {
			plain, err := r.Decrypt("chunk/a", data)
			require.NoError(t, err)
			assert.Equal(t, "Pay invoice 118", string(plain))
		}
	}
	_, err := fresh.Decrypt("chunk/a", before)
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	assert.Contains(t, err.Error(), "encrypted with key k1, and this process has k2")
	_, err = (*keyring.Ring)(nil).Decrypt("chunk/a", before)
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	assert.Contains(t, err.Error(), "has no keys")
}

func TestWhatIsChangedIsNotRead(t *testing.T) {
	r := ring(t, key(t, "k1"))
	data := r.Encrypt("head/trip-42", []byte("the head"))
	assert.NotContains(t, string(data), "the head")
	assert.NotEqual(t, data, r.Encrypt("head/trip-42", []byte("the head")), "nobody sees that two are the same")
	_, err := r.Decrypt("head/trip-43", data)
	require.ErrorIs(t, err, agent.CodeBadSignature, "a head of another session")
	_, err = ring(t, key(t, "k1")).Decrypt("head/trip-42", data)
	require.ErrorIs(t, err, agent.CodeBadSignature, "another key of the same id")
	for i := range data {
		bad := append([]byte{}, data...)
		bad[i] ^= 1
		_, err := r.Decrypt("head/trip-42", bad)
		require.Error(t, err, "byte %d", i)
		_, err = r.Decrypt("head/trip-42", data[:i])
		require.Error(t, err, "the first %d bytes", i)
	}
}

func TestBadKeys(t *testing.T) {
	short := base64.StdEncoding.EncodeToString([]byte("too short"))
	good := key(t, "k1")
	for text, want := range map[string]string{
		"k1":                  "key 1 has no ':': write id:base64",
		"k1:":                 "key 1 has 0 bytes",
		"K1:" + short:         "key 1 has no id",
		good + ",k2:????":     "key 2: the text after the ':' is not base64",
		good + ",k2:" + short: "key 2 has 9 bytes",
		good + ", " + good:    "key 2 has the id of one before it",
		"k1:" + base64.StdEncoding.EncodeToString(make([]byte, 33)): "a key of AES-256 has 32",
	} {
		_, err := keyring.Parse(text)
		require.ErrorIs(t, err, agent.CodeInvalidInput, text)
		assert.Contains(t, err.Error(), want)
		assert.NotContains(t, err.Error(), short)
		assert.NotContains(t, err.Error(), strings.Split(good, ":")[1])
	}
	none, err := keyring.Parse(" ")
	require.NoError(t, err)
	assert.Nil(t, none)
	assert.Empty(t, none.Primary())
	_, err = keyring.New("K 1")
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

func TestNoKeyIsEverShown(t *testing.T) {
	text := key(t, "k1")
	r := ring(t, text)
	secret := strings.Split(text, ":")[1]
	raw, err := base64.StdEncoding.DecodeString(secret)
	require.NoError(t, err)
	encoded, err := json.Marshal(map[string]any{"ring": r})
	require.NoError(t, err)
	for _, shown := range []string{fmt.Sprint(r), fmt.Sprintf("%v %+v %#v %x %s %q", r, r, r, r, r, r), fmt.Sprintf("%+v", struct{ R *keyring.Ring }{r}), string(encoded)} {
		assert.NotContains(t, shown, secret)
		assert.NotContains(t, shown, fmt.Sprintf("%x", raw))
		assert.NotContains(t, shown, fmt.Sprint(raw))
		assert.Contains(t, shown, "keys k1")
	}
}

func FuzzDecrypt(f *testing.F) {
	text, _ := keyring.New("k1")
	r, _ := keyring.Parse(text)
	f.Add(r.Encrypt("x", []byte("plain")))
	f.Add([]byte{1, 2, 'k', '1'})
	f.Fuzz(func(t *testing.T, data []byte) {
		if plain, err := r.Decrypt("y", data); err == nil {
			t.Fatalf("%q was read for another purpose", plain)
		}
	})
}
