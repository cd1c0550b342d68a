// Back-ups of the home: other parts of the program create, verify and restore them through this
// file, which loads what does it on use.

export type { Counts, Created, CreateOptions } from './create.ts';
export type { Place } from './places.ts';
export type { RestoreOptions, TrialResult, Verified, VerifyOptions } from './restore.ts';

/** A back-up of a home, also beside its running gateway. */
export const createBackup = async (
  options: Parameters<typeof import('./create.ts').createBackup>[0],
) => (await import('./create.ts')).createBackup(options);

/** Message, session and row counts of a home in which nobody writes. */
export const countHome = async (home: Parameters<typeof import('./create.ts').countHome>[0]) =>
  (await import('./create.ts')).countHome(home);

/** Restores a back-up into a temporary folder and starts a gateway there. */
export const verifyBackup = async (
  options: Parameters<typeof import('./restore.ts').verifyBackup>[0],
) => (await import('./restore.ts')).verifyBackup(options);

export const restoreBackup = async (
  options: Parameters<typeof import('./restore.ts').restoreBackup>[0],
) => (await import('./restore.ts')).restoreBackup(options);

/** Starts the program in a copy of a home, without contact to anything. */
export const trialStart = async (
  options: Parameters<typeof import('./restore.ts').trialStart>[0],
) => (await import('./restore.ts')).trialStart(options);

export const openPlace = async (...given: Parameters<typeof import('./places.ts').openPlace>) =>
  (await import('./places.ts')).openPlace(...given);
