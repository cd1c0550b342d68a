// What the page and the frame of a diagram say to each other.

export type Source = { readonly source: string };

export type Drawn =
  | { readonly type: 'ready' }
  /** In pixels. */
  | { readonly type: 'drawn'; readonly height: number }
  | { readonly type: 'failed'; readonly reason: string };
