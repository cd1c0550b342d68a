// How French, Spanish, Italian and Portuguese tell in the first person of something done.

import { type ClaimPattern, claims, END, OF_PROGRAM, OF_THING, ofYours } from './claim-pattern.ts';

const FR_ADVERBS =
  '(?:(?:bien|déjà|aussi|également|maintenant|donc|immédiatement|tout de suite) )*';
const FR = `(?:j'ai|nous avons|je (?:(?:te|vous|lui|leur|le|la|les|l'|t'|m')\\s?)+ai) ${FR_ADVERBS}`;
export const FRENCH: readonly ClaimPattern[] = [
  ...claims(
    'sent',
    `${FR}(?:envoyée?s?|transmise?s?|transférée?s?|répondu à|prévenue?s?|notifiée?s?|publiée?s?)${END}`,
    `(?:e-?mail|courriel|message|lettre|invitation) a (?:bien )?été (?:envoyée?|transmise?)${END}`,
    `c'est envoyé${END}`,
  ),
  ...claims(
    'saved',
    `${FR}(?:enregistrée?s?|sauvegardée?s?|mémorisée?s?)${END}`,
    `${FR}(?:notée?s?|retenue?s?)${END}(?! que)`,
    `${FR}(?:ajoutée?s?|créée?s?|écrite?s?)${OF_THING}`,
    `c'est (?:noté|enregistré|sauvegardé)${END}`,
  ),
  ...claims(
    'booked',
    `${FR}(?:réservée?s?|commandée?s?|payée?s?|achetée?s?|réglée?s?)${END}`,
    `c'est (?:réservé|commandé|payé)${END}`,
  ),
  ...claims(
    'scheduled',
    `${FR}(?:programmée?s?|planifiée?s?)${END}`,
    `${FR}(?:mis|créé|réglé|défini|placé)(?: en place)? un (?:rappel|rendez-vous|événement|minuteur)`,
  ),
  ...claims(
    'changed',
    `${FR}(?:supprimée?s?|effacée?s?|annulée?s?|résiliée?s?)${END}`,
    `${FR}(?:modifiée?s?|mis à jour|déplacée?s?|renommée?s?)${OF_THING}`,
    `${FR}(?:modifiée?s?|mis à jour|complétée?s?)${ofYours('tes|vos|ta|votre|ton', 'notes?|listes?|mémoire|profil|journal')}`,
  ),
  ...claims('ran', `${FR}(?:exécutée?s?|lancée?s?|fait tourner)${OF_PROGRAM}`),
];

/** Not behind "no". */
const ES = '(?<!no |no te |no lo |no la |no se lo |no le |nunca )';
const ES_PERFECT = `${ES}(?:he|hemos|ya he) (?:ya )?`;
export const SPANISH: readonly ClaimPattern[] = [
  ...claims(
    'sent',
    `${ES_PERFECT}(?:enviado|mandado|reenviado|respondido a|notificado|publicado)${END}`,
    `${ES}(?:envié|mandé|reenvié)${END}`,
    `(?:correo|mensaje|carta|invitación) (?:ha sido|fue) enviad[oa]${END}(?! por )`,
    `se (?:ha enviado|envió) (?:el|la|tu|su) (?:correo|mensaje|carta|invitación)${END}`,
    '(?<=^¡?(?:listo[.!,]? ?)?)enviado(?:!|$|\\.$)',
  ),
  ...claims(
    'saved',
    `${ES_PERFECT}(?:guardado|anotado|apuntado|memorizado|registrado)${END}`,
    `${ES}(?:guardé|anoté|apunté)${END}`,
    `${ES_PERFECT}(?:añadido|agregado|creado|escrito)${OF_THING}`,
    '(?<=^¡?(?:listo[.!,]? ?)?)(?:guardado|anotado)(?:!|$|\\.$)',
  ),
  ...claims(
    'booked',
    `${ES_PERFECT}(?:reservado|comprado|pagado|encargado)${END}`,
    `${ES}(?:reservé|compré|pagué)${END}`,
    '(?<=^¡?(?:listo[.!,]? ?)?)reservado(?:!|$|\\.$)',
  ),
  ...claims(
    'scheduled',
    `${ES_PERFECT}(?:programado|agendado)${END}`,
    `${ES}(?:programé|agendé)${END}`,
    `${ES_PERFECT}(?:puesto|creado|configurado) un (?:recordatorio|evento|temporizador)`,
  ),
  ...claims(
    'changed',
    `${ES_PERFECT}(?:eliminado|borrado|cancelado|anulado)${END}`,
    `${ES}(?:eliminé|borré|cancelé)${END}`,
    `${ES_PERFECT}(?:modificado|cambiado|actualizado|movido)${OF_THING}`,
    `${ES_PERFECT}(?:modificado|cambiado|actualizado)${ofYours('tus?|sus?', 'notas?|listas?|memoria|perfil|diario')}`,
    `${ES}(?:modifiqué|actualicé)${ofYours('tus?|sus?', 'notas?|listas?|memoria|perfil|diario')}`,
  ),
  ...claims(
    'ran',
    `${ES_PERFECT}(?:ejecutado|corrido|lanzado)${OF_PROGRAM}`,
    `${ES}(?:ejecuté|corrí)${OF_PROGRAM}`,
  ),
];

const IT =
  "(?<!non |non l'|non gli |non te l'|non ti )(?:ho|abbiamo)(?: già| appena| anche| ora| subito)* ";
const IT_OBJECT = `(?<!non )(?:te |gliel|ce |gli |ti )?(?:l')?${IT}`;
export const ITALIAN: readonly ClaimPattern[] = [
  ...claims(
    'sent',
    `${IT_OBJECT}(?:inviat|mandat|spedit|inoltrat|pubblicat|avvisat)[oaie]${END}`,
    `(?:e-?mail|messaggio|lettera|invito) è stat[oa] inviat[oa]${END}`,
    '(?<=^(?:fatto[.!,]? ?)?)inviat[oa](?:!|$|\\.$)',
  ),
  ...claims(
    'saved',
    `${IT_OBJECT}(?:salvat|annotat|memorizzat|registrat|segnat)[oaie]${END}`,
    `${IT_OBJECT}(?:aggiunt|creat|scritt)[oaie]${OF_THING}`,
  ),
  ...claims('booked', `${IT_OBJECT}(?:prenotat|ordinat|pagat|acquistat|comprat)[oaie]${END}`),
  ...claims(
    'scheduled',
    `${IT_OBJECT}(?:programmat|pianificat|fissat)[oaie]${END}`,
    `${IT_OBJECT}(?:impostato|creato|messo) un (?:promemoria|evento|timer|appuntamento)`,
  ),
  ...claims(
    'changed',
    `${IT_OBJECT}(?:eliminat|cancellat|annullat|disdett)[oaie]${END}`,
    `${IT_OBJECT}(?:modificat|aggiornat|spostat|rinominat)[oaie]${OF_THING}`,
    `${IT_OBJECT}(?:modificat|aggiornat)[oaie]${ofYours('tue?|tuoi|sue?|suoi', 'not[ae]|list[ae]|memoria|profilo|diario')}`,
  ),
  ...claims('ran', `${IT_OBJECT}(?:eseguit|lanciat|avviat)[oaie]${OF_PROGRAM}`),
];

const PT = '(?<!não |não o |não a |não lhe |não te |nunca )';
export const PORTUGUESE: readonly ClaimPattern[] = [
  ...claims(
    'sent',
    `${PT}(?:enviei|mandei|encaminhei|reencaminhei|notifiquei|publiquei)${END}`,
    `(?:e-?mail|mensagem|carta|convite) foi enviad[oa]${END}`,
    '(?<=^(?:pronto[.!,]? ?)?)enviad[oa](?:!|$|\\.$)',
  ),
  ...claims(
    'saved',
    `${PT}(?:salvei|guardei|gravei|anotei|registrei|memorizei)${END}`,
    `${PT}(?:adicionei|criei|escrevi)${OF_THING}`,
  ),
  ...claims('booked', `${PT}(?:reservei|comprei|paguei|encomendei)${END}`),
  ...claims(
    'scheduled',
    `${PT}(?:agendei|programei|marquei)${END}`,
    `${PT}(?:criei|defini|configurei) um (?:lembrete|evento|alarme)`,
  ),
  ...claims(
    'changed',
    `${PT}(?:apaguei|excluí|eliminei|cancelei)${END}`,
    `${PT}(?:alterei|modifiquei|atualizei|movi)${OF_THING}`,
    `${PT}(?:alterei|modifiquei|atualizei)${ofYours('tuas?|suas?|teu|seu', 'notas?|listas?|memória|perfil|diário')}`,
  ),
  ...claims('ran', `${PT}(?:executei|rodei|corri)${OF_PROGRAM}`),
];
