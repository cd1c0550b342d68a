// The few file system errors that are answers, not failures.

type SystemErrorCode = 'ENOENT' | 'EEXIST' | 'EXDEV';

export function hasErrorCode(error: unknown, code: SystemErrorCode): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** For `catch`: the expected error becomes undefined, any other is thrown on. */
export function orUndefined(code: SystemErrorCode): (error: unknown) => undefined {
  return (error) => {
    if (hasErrorCode(error, code)) return undefined;
    throw error;
  };
}
