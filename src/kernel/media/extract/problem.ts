// Why a document is not read, and the limits that no document passes (cases E19 to E21 and X10).

/** `message` is for people, without a full stop. */
export class DocumentProblem extends Error {
  override readonly name = 'DocumentProblem';
}

export const MAX_ARCHIVE_ENTRIES = 1000;
/** Of one part and of all parts together, unpacked. */
export const MAX_UNPACKED_BYTES = 100_000_000;
export const MAX_RATIO = 100;
/** Small parts may be packed better than that. */
export const FREE_UNPACKED_BYTES = 1_000_000;
/** More of a text is never read. */
export const MAX_TEXT_CHARS = 2_000_000;
export const MAX_SECTIONS = 2000;

export const DAMAGED = 'it is damaged, or is not what its name says';
export const LOCKED = 'it is protected by a password';
export const TOO_LARGE = 'it takes more memory than a document may';
/** Where the process has less memory than a document may take. */
export const tooLargeHere = (bytes: number) =>
  `reading it takes more than the ${Math.floor(bytes / 1_000_000)} MB of memory that one file may take here; send a smaller file, or give the gateway more memory`;
export const TOO_SLOW = 'reading it takes too long';
export const ARCHIVE = 'it is an archive, and archives are not unpacked';
export const UNKNOWN = 'it is of a kind that cannot be read as text';
