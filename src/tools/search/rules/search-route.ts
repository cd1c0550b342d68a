// Which sources a plain question is put to, by the words in it. In doubt several are asked: an answer
// that is not needed costs less than one that was not looked for.

/** Where something may be found out. */
export const SEARCH_SOURCES = ['memory', 'sessions', 'mailbox', 'files', 'web'] as const;
export type SearchSource = (typeof SEARCH_SOURCES)[number];

/** English, German, French, Spanish. */
const SIGNS: Readonly<Record<SearchSource, RegExp>> = {
  memory:
    /\b(?:my|mine|our|i|me|mein\w*|unser\w*|ich|mir|mes|mon|ma|je|mi|mis|yo|remember|prefer\w*|favou?rite|birthday|geburtstag|merk\w*|notier\w*|souviens|recuerd\w*)\b/iu,
  sessions:
    /\b(?:we|you|us|wir|du|nous|tu|nosotros|said|told|talked|discussed|decided|mentioned|conversation|chat|earlier|yesterday|last (?:time|week|month)|gesagt|besprochen|erw[äa]hnt|gestern|letzte\w*|gespr[äa]ch|dit|hier|hablamos|dijiste|ayer)\b/iu,
  mailbox:
    /\b(?:e-?mails?|mails?|inbox|mailbox|wrote to|sent me|unread|newsletter|invoices?|receipts?|posteingang|postfach|geschrieben|rechnung\w*|courriel\w*|correo\w*|facturas?|factures?)\b/iu,
  files:
    /\b(?:files?|folders?|documents?|notes?|drafts?|list|workspace|\w+\.(?:md|txt|pdf|csv|json|docx?|xlsx?)|datei\w*|ordner|dokument\w*|notiz\w*|entwurf|fichiers?|dossier|archivos?|carpeta|notas?)\b/iu,
  web: /\b(?:news|latest|current|today|price|weather|forecast|who is|what is|when (?:is|was|did)|how (?:do|to|much|many)|where is|release|version|website|online|web|internet|stock|nachrichten|aktuell\w*|heute|preis|wetter|wer ist|was ist|wann|wie (?:viel|geht)|actualit[ée]s|m[ée]t[ée]o|prix|noticias|tiempo|precio|qui[ée]n es|qu[ée] es)\b/iu,
};
/** A question about the world that names nothing of the person's. */
const WORLDLY: readonly SearchSource[] = ['memory', 'web'];

/** Of those that can be asked, in the order in which their answers are shown. */
export function fittingSources(
  question: string,
  available: readonly SearchSource[],
): readonly SearchSource[] {
  const fitting = available.filter((source) => SIGNS[source].test(question));
  if (fitting.length > 0) return fitting;
  const usual = available.filter((source) => WORLDLY.includes(source));
  return usual.length > 0 ? usual : available;
}

/**
 * Where those that were asked found nothing: the next to ask, or none. What is a person's own is looked
 * for among their own things only; a question about the world may go to the web after that.
 */
export function nextSources(
  question: string,
  available: readonly SearchSource[],
  asked: readonly SearchSource[],
): readonly SearchSource[] {
  const left = available.filter((source) => !asked.includes(source));
  const own = left.filter((source) => source !== 'web');
  if (own.length > 0) return own;
  const isPersonal = SEARCH_SOURCES.some(
    (source) => source !== 'web' && SIGNS[source].test(question),
  );
  return isPersonal ? [] : left;
}

const MIN_WORD_CHARS = 3;
const MAX_WORDS = 6;
/** Words of every question. */
const COMMON = new Set(
  (
    'the and for are was were has have had did does what when where which who whom whose why how ' +
    'that this these those with about from into your you our ours mine they them their there here ' +
    'can could should would will shall may might must not any some all one two its his her him she ' +
    'find look search tell show give said told please know last time week month year ' +
    'der die das den dem des ein eine einen einem einer und oder ist sind war waren hat haben hatte ' +
    'was wann wer wen wem wie warum welche welcher welches mein meine meinen dein deine unser sein ' +
    'ihr ihre mit von zum zur aus bei nach über auf für nicht auch noch mal bitte suche finde zeig ' +
    'les des une est sont dans pour avec sur mon mes ton tes que qui quoi quand où pourquoi comment ' +
    'los las una unos unas del por para con mis sus qué quién cuándo dónde cómo'
  ).split(' '),
);

/** The telling words of a question, longest first. */
export function tellingWords(question: string): readonly string[] {
  const words = question.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_.-]*[\p{L}\p{N}]/gu) ?? [];
  const telling = words.filter((word) => word.length >= MIN_WORD_CHARS && !COMMON.has(word));
  return [...new Set(telling)].sort((a, b) => b.length - a.length).slice(0, MAX_WORDS);
}
