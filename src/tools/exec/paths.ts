// Facts about absolute paths without links.

import { sep } from 'node:path';

/** Whether the path is the folder or lies in it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
