package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/rpcbench/rpcbench"
)

const userPart, avatarPart = "user", "avatar"

// parts encodes a user, or the response with a user, as multipart/form-data: a field "user" with the value in the
// codec's format, and a file "avatar" if there is one. Every other body is in the codec's format alone.
type parts struct{ whole }

// form is a body with the content type that names its boundary.
type form struct {
	*bytes.Reader
	contentType string
}

func (b parts) encode(v any) (io.Reader, error) {
	u, ok := v.(*rpcbench.User)
	if !ok {
		return b.whole.encode(v)
	}
	without := *u
	without.Avatar = nil
	return b.form(&without, u.Avatar)
}

func (b parts) form(value any, avatar []byte) (*form, error) {
	data, err := b.Marshal(value)
	if err != nil {
		return nil, err
	}
	body := new(bytes.Buffer)
	w := multipart.NewWriter(body)
	part, err := w.CreateFormField(userPart)
	if err == nil {
		_, err = part.Write(data)
	}
	if err == nil && len(avatar) > 0 {
		if part, err = w.CreateFormFile(avatarPart, avatarPart); err == nil {
			_, err = part.Write(avatar)
		}
	}
	err = errors.Join(err, w.Close())
	return &form{bytes.NewReader(body.Bytes()), w.FormDataContentType()}, err
}

func (b parts) reply(w http.ResponseWriter, status int, v any) error {
	r, ok := v.(*rpcbench.Response)
	if !ok {
		return b.whole.reply(w, status, v)
	}
	user, without := *r.User, *r
	user.Avatar, without.User = nil, &user
	f, err := b.form(&without, r.User.Avatar)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", f.contentType)
	w.WriteHeader(status)
	_, _ = f.WriteTo(w) // fails only if the client is gone
	return nil
}

func (b parts) decode(header http.Header, body io.Reader, v any) error {
	var user func() *rpcbench.User
	switch v := v.(type) {
	case *rpcbench.User:
		user = func() *rpcbench.User { return v }
	case *rpcbench.Response:
		user = func() *rpcbench.User { return v.User }
	default:
		return b.whole.decode(header, body, v)
	}
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return fmt.Errorf("a user is multipart/form-data with a boundary, not %q", header.Get("Content-Type"))
	}
	r := multipart.NewReader(body, params["boundary"])
	var avatar []byte
	for seen := ""; ; {
		part, err := r.NextPart()
		switch {
		case errors.Is(err, io.EOF) && seen == "":
			return fmt.Errorf("the part %q is missing", userPart)
		case errors.Is(err, io.EOF):
			if u := user(); u != nil {
				u.Avatar = avatar
			}
			_, err = io.Copy(io.Discard, body) // a connection is used again if its reply was read to the end
			return err
		case err != nil:
			return err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		switch name := part.FormName(); {
		case seen == "" && name == userPart:
			err = b.Unmarshal(data, v)
		case seen == userPart && name == avatarPart:
			avatar = data
		default:
			err = fmt.Errorf("the part %q is not expected here: first %q, then at most one %q", name, userPart, avatarPart)
		}
		if err != nil {
			return err
		}
		seen = part.FormName()
	}
}
