package archive

var FolderOf = folderOf
