package msgp

//go:generate go tool -modfile=../../tools/go.mod msgp -io=false -tests=false

// User is rpcbench.User.
type User struct {
	ID       string `json:"id,omitempty" msg:"id,omitempty"`
	Email    string `json:"email" msg:"email"`
	Name     string `json:"name" msg:"name"`
	Password string `json:"password" msg:"password"`
	Avatar   []byte `json:"avatar,omitempty" msg:"avatar,omitempty"`
}

// Response is rpcbench.Response.
type Response struct {
	Code    int32  `json:"code" msg:"code"`
	Message string `json:"message" msg:"message"`
	User    *User  `json:"user" msg:"user"`
}

// Flex is message.Flex. The limits are on what the decoder allocates at the word of an array's length, before it has
// seen an element: without them a body of twelve bytes asks for 32 GiB, which ends the process.
type Flex struct {
	Double   float64 `json:"double,omitempty" msg:"double,omitempty"`
	Float    float32 `json:"float,omitempty" msg:"float,omitempty"`
	Int32    int32   `json:"int32,omitempty" msg:"int32,omitempty"`
	Int64    int64   `json:"int64,omitempty" msg:"int64,omitempty"`
	Uint32   uint32  `json:"uint32,omitempty" msg:"uint32,omitempty"`
	Uint64   uint64  `json:"uint64,omitempty" msg:"uint64,omitempty"`
	Sint32   int32   `json:"sint32,omitempty" msg:"sint32,omitempty"`
	Sint64   int64   `json:"sint64,omitempty" msg:"sint64,omitempty"`
	Fixed32  uint32  `json:"fixed32,omitempty" msg:"fixed32,omitempty"`
	Fixed64  uint64  `json:"fixed64,omitempty" msg:"fixed64,omitempty"`
	Sfixed32 int32   `json:"sfixed32,omitempty" msg:"sfixed32,omitempty"`
	Sfixed64 int64   `json:"sfixed64,omitempty" msg:"sfixed64,omitempty"`
	Bool     bool    `json:"bool,omitempty" msg:"bool,omitempty"`
	String   string  `json:"string,omitempty" msg:"string,omitempty"`
	Bytes    []byte  `json:"bytes,omitempty" msg:"bytes,omitempty"`
	Message  *Pair   `json:"message,omitempty" msg:"message,omitempty"`
	First    []*Pair `json:"first,omitempty" msg:"first,omitempty,limit=65536"`
	Second   []*Pair `json:"second,omitempty" msg:"second,omitempty,limit=65536"`
	Optional *Pair   `json:"optional,omitempty" msg:"optional,omitempty"`
}

// Pair is message.Pair.
type Pair struct {
	Key   string `json:"key,omitempty" msg:"key,omitempty"`
	Value int64  `json:"value,omitempty" msg:"value,omitempty"`
}

// Error is what rpcbench.Error sends.
type Error struct {
	Code       string      `json:"code" msg:"code"`
	Violations []Violation `json:"violations,omitempty" msg:"violations,omitempty,limit=65536"`
	Message    string      `json:"message,omitempty" msg:"message,omitempty"`
}

// Violation is rpcbench.Violation.
type Violation struct {
	Field string `json:"field" msg:"field"`
	Rule  string `json:"rule" msg:"rule"`
}
