// What passes between the tool and the thread that reads pages.

export type PageSource = {
  readonly bytes: Uint8Array;
  /** As the server says; may be empty. */
  readonly contentType: string;
  readonly url: string;
};

export type ReadPage = {
  /** Empty where the page has none. */
  readonly title: string;
  /** Markdown of what a person would see. */
  readonly text: string;
  /** In words, where the page was cut or could not be read as it is. */
  readonly note?: string;
};

export type ToReader = { readonly kind: 'read'; readonly page: PageSource };
export type FromReader =
  /** The thread has loaded what it reads with. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'read'; readonly page: ReadPage }
  | { readonly kind: 'failed'; readonly problem: string };
