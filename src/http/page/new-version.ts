// Code that is loaded on use may be gone: the gateway has another version of the page since this one was
// opened, or was away. The page then loads itself again at its address, as soon as the gateway answers;
// what is typed and not sent stays.

/** The version for which this tab has loaded itself again: code that still cannot be loaded is broken. */
const RELOADED = 'nanobot.reloaded';
const VERSION = /="\/built\/([\w-]+)\//;
const RETRY_MS = 1000;

/** Rejects where the code cannot be loaded; the page may load itself again later. */
export async function loadOnUse<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    await Promise.race([reloadWhenServed(), pause()]);
    throw error;
  }
}

async function reloadWhenServed(): Promise<void> {
  const version = await servedVersion();
  if (version === undefined) {
    await pause();
    return reloadWhenServed();
  }
  if (sessionStorage.getItem(RELOADED) === version) return;
  sessionStorage.setItem(RELOADED, version);
  location.reload();
  await new Promise<never>(() => undefined);
}

/** Undefined while the gateway does not answer. */
async function servedVersion(): Promise<string | undefined> {
  const answer = await fetch('/', { cache: 'no-store' }).then(
    (response) => response.text(),
    () => '',
  );
  return VERSION.exec(answer)?.[1];
}

const pause = () => new Promise<void>((resolve) => setTimeout(resolve, RETRY_MS));
