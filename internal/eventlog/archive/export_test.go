package archive

var (
	FolderOf   = folderOf
	FolderName = folderName
	ContextOf  = contextOf
)
