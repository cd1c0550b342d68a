// Names of parameters that several tools share, as models write them.

export const PATH_NAMES = [
  'file_path',
  'filepath',
  'file',
  'filename',
  'dir_path',
  'directory',
  'dir',
  'folder',
] as const;

export const QUERY_NAMES = ['q', 'search_query', 'search', 'text'] as const;
