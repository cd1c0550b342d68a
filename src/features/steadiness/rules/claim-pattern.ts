// What the patterns of all languages are made of, and what keeps a sentence from being a claim. An object
// is asked for where the verb is also said of words: "I changed the wording" tells of the answer itself.

export type ClaimKind = 'sent' | 'saved' | 'booked' | 'scheduled' | 'changed' | 'ran';
export type ClaimPattern = { readonly kind: ClaimKind; readonly pattern: RegExp };

export const START = "(?<![\\p{L}\\p{N}'])";
export const END = '(?![\\p{L}\\p{N}])';
const between = (max: number) => `[^.!?;:]{0,${max}}?`;

/** Stands for a dot within a word: the name of a file ends no sentence. */
export const INNER_DOT = '\u2024';

/**
 * Things that are there outside the answer, in all languages; ¤ stands for what was code. Lists, messages
 * and notes are written into answers too.
 */
export const THING = [
  `¤|\\S+${INNER_DOT}(?:txt|md|csv|json|ya?ml|html?|pdf|docx?|xlsx?|pptx?|py|js|ts|sh)`,
  'files?|folders?|director(?:y|ies)|reminders?|alarms?|events?|appointments?|meetings?|bookings?|reservations?|orders?|subscriptions?|calendars?|contacts?|accounts?|jobs?|settings?',
  'datei(?:en)?|ordner|erinnerung(?:en)?|termine?|besprechung(?:en)?|buchung(?:en)?|bestellung(?:en)?|kalender|kontakte?|konto|einstellung(?:en)?',
  'fichiers?|dossiers?|rappels?|événements?|rendez-vous|réunions?|réservations?|commandes?|calendrier|agenda|contacts?|comptes?|réglages?|paramètres?',
  'archivos?|carpetas?|recordatorios?|eventos?|citas?|reunión|reuniones|reservas?|pedidos?|calendario|contactos?|cuentas?|ajustes?',
  'appunt[oi]|promemoria|eventi?|riunion[ei]|prenotazion[ei]|contatt[oi]|impostazion[ei]|cartell[ae]|agenda',
  'arquivos?|ficheiros?|pastas?|lembretes?|compromissos?|reuni(?:ão|ões)|encomendas?|configuraç(?:ão|ões)',
].join('|');
export const OF_THING = `${between(60)}${START}(?:${THING})${END}`;

/** Said of notes and lists that are kept for the person; one that is shown behind a colon is none. */
export const ofYours = (yours: string, things: string) =>
  `${between(40)}${START}(?:${yours}) (?:\\S+ )?(?:${things})${END}(?!:)`;

/** Programs and what checks them. */
const PROGRAM =
  'tests?|test suite|suite|scripts?|programs?|commands?|code|builds?|linter|benchmarks?|migrations?' +
  '|testsuite|skripte?|programme?|befehle?' +
  '|commandes?|programmes?' +
  '|pruebas?|comandos?|programas?|código' +
  '|comand[oi]|programm[ai]|codice' +
  '|testes';
export const OF_PROGRAM = `${between(40)}${START}(?:${PROGRAM})${END}(?! (?:in my head|mentally|im kopf))`;

export function claims(kind: ClaimKind, ...sources: readonly string[]): readonly ClaimPattern[] {
  return sources.map((source) => ({ kind, pattern: new RegExp(`${START}${source}`, 'iu') }));
}

/** Said before a claim it is none: a condition, a plan, a wish, or somebody else's words. */
export const NOT_SAID_AS_DONE = new RegExp(
  `${START}(?:if|whether|once|when|after|unless|until|before|as soon as|pretend|imagine|suppose|assum\\w+|said|says|wrote|told|think|thought|not sure|don't|didn't|never|wish|as though` +
    '|wenn|ob|sobald|nachdem|falls|bevor|als ob|sagt|sagte|schrieb|glaube|dachte' +
    '|si|quand|dès que|après que|avant que|lorsque|une fois que' +
    '|cuando|en cuanto|después de que|antes de que|dijo|creo' +
    '|se(?=\\s*$)|quando|appena|dopo che|prima che|detto|dice|credo' +
    '|assim que|depois que|antes que|disse|acho)' +
    `${END}[^;]*$`,
  'iu',
);

/** Tells of another time, where another turn's tools did that, or of what stands in the answer. */
export const NOT_ABOUT_NOW = new RegExp(
  `${START}(?:yesterday|earlier|previously|last (?:week|month|year|time|night|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|ago|the other day|this morning|back (?:in|on)|below|above|following` +
    '|gestern|vorgestern|vorhin|früher|letzte[nrs]?|vor \\d+|heute morgen|unten|oben|folgende[nrs]?' +
    "|avant-hier|hier,? j'ai|j'ai[^.]* hier|la semaine dernière|il y a|ci-dessous|ci-dessus|tout à l'heure" +
    '|ayer|anteayer|la semana pasada|hace (?:un|una|dos|tres|\\d+)|antes|a continuación|abajo|siguiente' +
    '|ieri|la settimana scorsa|(?:giorn[oi]|or[ae]|settiman[ae]|mes[ei]|minut[oi]|ann[oi]) fa|qui sotto|seguito|seguente' +
    `|ontem|anteontem|semana passada|atrás|há|abaixo|a seguir|seguinte)${END}`,
  'iu',
);
