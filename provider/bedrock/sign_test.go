package bedrock_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
)

// checkSignature computes the signature of a request as AWS's documents have it ("Create
// a signed AWS API request"), with nothing of the SDK.
func checkSignature(r *http.Request, body []byte) error {
	got := r.Header.Get("Authorization")
	var scope, names, signature string
	if _, err := fmt.Sscanf(strings.ReplaceAll(got, ",", ""), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/%s SignedHeaders=%s Signature=%s", &scope, &names, &signature); err != nil {
		return fmt.Errorf("authorization %q: %w", got, err)
	}
	var headers strings.Builder
	list := strings.Split(names, ";")
	for _, name := range list {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(len(body))
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	for _, name := range []string{"host", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(list, name) {
			return fmt.Errorf("the header %s is not signed", name)
		}
	}
	var path strings.Builder // as it came, and encoded once more
	for _, b := range []byte(r.URL.EscapedPath()) {
		if b == '/' || b == '-' || b == '_' || b == '.' || b == '~' || b >= '0' && b <= '9' || b|32 >= 'a' && b|32 <= 'z' {
			path.WriteByte(b)
		} else {
			fmt.Fprintf(&path, "%%%02X", b)
		}
	}
	canonical := strings.Join([]string{r.Method, path.String(), r.URL.RawQuery, headers.String(), names, sum(body)}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	if want := hex.EncodeToString(mac(key, strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope, sum([]byte(canonical))}, "\n"))); want != signature {
		return fmt.Errorf("the signature is %s, want %s of\n%s", signature, want, canonical)
	}
	if _, rest, _ := strings.Cut(scope, "/"); rest != region+"/bedrock/aws4_request" {
		return fmt.Errorf("it is signed for %s", scope)
	}
	return nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func mac(key []byte, data string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(data))
	return h.Sum(nil)
}

// The official client asks at the same place, and reads the same of the stand-in's answer.
func TestAsTheOfficialClient(t *testing.T) {
	for _, id := range []string{sonnet, "anthropic.claude-haiku-4-5-20251001-v1:0", "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a1b2"} {
		var uris []string
		m, s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			uris = append(uris, r.RequestURI)
			streams(whole...)(w, r)
		})
		req := ask("Hello")
		req.Model = id
		reply, _ := standin.Reply(t, m, req)

		official := bedrockruntime.New(bedrockruntime.Options{
			Region: region, BaseEndpoint: &s.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", secret, token),
		})
		out, err := official.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: &id, Messages: []types.Message{
			{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "Hello"}}}}})
		require.NoError(t, err)
		var said strings.Builder
		var usage *types.TokenUsage
		for ev := range out.GetStream().Events() {
			switch ev := ev.(type) {
			case *types.ConverseStreamOutputMemberContentBlockDelta:
				switch d := ev.Value.Delta.(type) {
				case *types.ContentBlockDeltaMemberText:
					said.WriteString(d.Value)
				case *types.ContentBlockDeltaMemberToolUse:
					said.WriteString(aws.ToString(d.Value.Input))
				}
			case *types.ConverseStreamOutputMemberMetadata:
				usage = ev.Value.Usage
			}
		}
		require.NoError(t, out.GetStream().Err())
		require.NotNil(t, usage)
		require.Equal(t, said.String(), reply.Parts[0].Text+string(reply.Parts[1].Call.Arguments))
		require.Equal(t, int64(aws.ToInt32(usage.InputTokens)), reply.Usage.Input)
		require.Len(t, uris, 2)
		require.Equal(t, uris[1], uris[0])
		require.JSONEq(t, string(s.Bodies[1]), `{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}`)
	}
}

// Where a region's models are is what the SDK says of every partition.
func TestRegions(t *testing.T) {
	for _, r := range []string{"us-east-1", "eu-central-1", "ap-northeast-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1", "us-iso-east-1", "us-isob-east-1"} {
		want, err := bedrockruntime.NewDefaultEndpointResolverV2().ResolveEndpoint(t.Context(), bedrockruntime.EndpointParameters{Region: &r})
		require.NoError(t, err)
		o := options("", token, &http.Client{Transport: nowhere{}})
		o.Region = r
		_, err = newModel(o).Generate(context.Background(), ask("Hello"), silent)
		require.ErrorContains(t, err, "gave no answer at "+want.URI.Host+":443")
	}
}

// nowhere is reached by no request.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
