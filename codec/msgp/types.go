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

// Small is message.Small.
type Small struct {
	Text string `json:"text,omitempty" msg:"text,omitempty"`
}

// AddressBook is message.AddressBook.
type AddressBook struct {
	People []*Person `json:"people,omitempty" msg:"people,omitempty,limit=65536"`
}

// Person is message.Person.
type Person struct {
	ID     int32    `json:"id,omitempty" msg:"id,omitempty"`
	Name   string   `json:"name,omitempty" msg:"name,omitempty"`
	Email  string   `json:"email,omitempty" msg:"email,omitempty"`
	Phones []*Phone `json:"phones,omitempty" msg:"phones,omitempty,limit=65536"`
}

// Phone is message.Phone.
type Phone struct {
	Number string    `json:"number,omitempty" msg:"number,omitempty"`
	Type   PhoneType `json:"type,omitempty" msg:"type,omitempty"`
}

// PhoneType is message.PhoneType.
type PhoneType int32

// NewsFeed is message.NewsFeed.
type NewsFeed struct {
	Profiles []*Profile `json:"profiles,omitempty" msg:"profiles,omitempty,limit=65536"`
}

// Profile is message.Profile.
type Profile struct {
	ID    int64   `json:"id,omitempty" msg:"id,omitempty"`
	Name  string  `json:"name,omitempty" msg:"name,omitempty"`
	Bio   string  `json:"bio,omitempty" msg:"bio,omitempty"`
	Posts []*Post `json:"posts,omitempty" msg:"posts,omitempty,limit=65536"`
}

// Post is message.Post.
type Post struct {
	ID        int64      `json:"id,omitempty" msg:"id,omitempty"`
	Time      int64      `json:"time,omitempty" msg:"time,omitempty"`
	Text      string     `json:"text,omitempty" msg:"text,omitempty"`
	Reactions []Reaction `json:"reactions,omitempty" msg:"reactions,omitempty,limit=65536"`
	Comments  []*Comment `json:"comments,omitempty" msg:"comments,omitempty,limit=65536"`
}

// Comment is message.Comment.
type Comment struct {
	Author int64  `json:"author,omitempty" msg:"author,omitempty"`
	Time   int64  `json:"time,omitempty" msg:"time,omitempty"`
	Text   string `json:"text,omitempty" msg:"text,omitempty"`
}

// Reaction is message.Reaction.
type Reaction int32

// Tree is message.Tree.
type Tree struct {
	Int1     int32     `json:"int1,omitempty" msg:"int1,omitempty"`
	Int2     int32     `json:"int2,omitempty" msg:"int2,omitempty"`
	Int3     int32     `json:"int3,omitempty" msg:"int3,omitempty"`
	Long1    int64     `json:"long1,omitempty" msg:"long1,omitempty"`
	Long2    int64     `json:"long2,omitempty" msg:"long2,omitempty"`
	Long3    int64     `json:"long3,omitempty" msg:"long3,omitempty"`
	Double1  float64   `json:"double1,omitempty" msg:"double1,omitempty"`
	Double2  float64   `json:"double2,omitempty" msg:"double2,omitempty"`
	Double3  float64   `json:"double3,omitempty" msg:"double3,omitempty"`
	Bool1    bool      `json:"bool1,omitempty" msg:"bool1,omitempty"`
	Bool2    bool      `json:"bool2,omitempty" msg:"bool2,omitempty"`
	Bool3    bool      `json:"bool3,omitempty" msg:"bool3,omitempty"`
	String1  string    `json:"string1,omitempty" msg:"string1,omitempty"`
	String2  string    `json:"string2,omitempty" msg:"string2,omitempty"`
	String3  string    `json:"string3,omitempty" msg:"string3,omitempty"`
	Branches []*Branch `json:"branches,omitempty" msg:"branches,omitempty,limit=65536"`
}

// Branch is message.Branch.
type Branch struct {
	Int1    int32   `json:"int1,omitempty" msg:"int1,omitempty"`
	Int2    int32   `json:"int2,omitempty" msg:"int2,omitempty"`
	Int3    int32   `json:"int3,omitempty" msg:"int3,omitempty"`
	Long1   int64   `json:"long1,omitempty" msg:"long1,omitempty"`
	Long2   int64   `json:"long2,omitempty" msg:"long2,omitempty"`
	Long3   int64   `json:"long3,omitempty" msg:"long3,omitempty"`
	Double1 float64 `json:"double1,omitempty" msg:"double1,omitempty"`
	Double2 float64 `json:"double2,omitempty" msg:"double2,omitempty"`
	Double3 float64 `json:"double3,omitempty" msg:"double3,omitempty"`
	Bool1   bool    `json:"bool1,omitempty" msg:"bool1,omitempty"`
	Bool2   bool    `json:"bool2,omitempty" msg:"bool2,omitempty"`
	Bool3   bool    `json:"bool3,omitempty" msg:"bool3,omitempty"`
	String1 string  `json:"string1,omitempty" msg:"string1,omitempty"`
	String2 string  `json:"string2,omitempty" msg:"string2,omitempty"`
	String3 string  `json:"string3,omitempty" msg:"string3,omitempty"`
	Leaves  []*Leaf `json:"leaves,omitempty" msg:"leaves,omitempty,limit=65536"`
}

// Leaf is message.Leaf.
type Leaf struct {
	Int1    int32   `json:"int1,omitempty" msg:"int1,omitempty"`
	Int2    int32   `json:"int2,omitempty" msg:"int2,omitempty"`
	Int3    int32   `json:"int3,omitempty" msg:"int3,omitempty"`
	Long1   int64   `json:"long1,omitempty" msg:"long1,omitempty"`
	Long2   int64   `json:"long2,omitempty" msg:"long2,omitempty"`
	Long3   int64   `json:"long3,omitempty" msg:"long3,omitempty"`
	Double1 float64 `json:"double1,omitempty" msg:"double1,omitempty"`
	Double2 float64 `json:"double2,omitempty" msg:"double2,omitempty"`
	Double3 float64 `json:"double3,omitempty" msg:"double3,omitempty"`
	Bool1   bool    `json:"bool1,omitempty" msg:"bool1,omitempty"`
	Bool2   bool    `json:"bool2,omitempty" msg:"bool2,omitempty"`
	Bool3   bool    `json:"bool3,omitempty" msg:"bool3,omitempty"`
	String1 string  `json:"string1,omitempty" msg:"string1,omitempty"`
	String2 string  `json:"string2,omitempty" msg:"string2,omitempty"`
	String3 string  `json:"string3,omitempty" msg:"string3,omitempty"`
}

// Article is message.Article.
type Article struct {
	Title    string     `json:"title,omitempty" msg:"title,omitempty"`
	Sections []*Section `json:"sections,omitempty" msg:"sections,omitempty,limit=65536"`
}

// Section is message.Section.
type Section struct {
	Heading string `json:"heading,omitempty" msg:"heading,omitempty"`
	Text    string `json:"text,omitempty" msg:"text,omitempty"`
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
