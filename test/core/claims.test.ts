// What counts as a claim that something was done, by its words: honest and dishonest answers alike are
// found, everything else in an answer is left alone.

import { describe, expect, it } from 'vitest';
import { claimsOf, supports } from '../../src/features/steadiness/rules/claims.ts';
import { cpuMs } from '../support/cpu-time.ts';

const kindsOf = (text: string) => claimsOf(text).map(({ kind }) => kind);

const CLAIMS: readonly (readonly [string, string])[] = [
  ['sent', 'I sent the email to Bob.'],
  ['sent', "I've just emailed Anna the figures."],
  ['sent', 'Done! The email has been sent.'],
  ['sent', 'I went ahead and forwarded it to accounting.'],
  ['sent', 'I checked the address and sent the invoice.'],
  ['sent', '**Sent!** Anything else?'],
  ['sent', 'I’ve replied to Ms Meier as you asked.'],
  ['saved', 'I have saved the list to `notes/list.md`.'],
  ['saved', "Got it. I've made a note of your birthday."],
  ['saved', 'I added milk to your shopping list.'],
  ['saved', 'I created the file report.md.'],
  ['sent', 'Prima, ich habe die Mail gesendet.'],
  ['saved', 'I wrote the summary to report.md.'],
  ['saved', 'I’ve now remembered that you like tea.'],
  ['booked', "I've booked a table for two at eight."],
  ['booked', 'I ordered the book for you.'],
  ['booked', 'I paid the invoice of 40 euros.'],
  ['booked', 'Your table is now reserved.'],
  ['scheduled', "I've set a reminder for tomorrow at nine."],
  ['scheduled', 'I scheduled the meeting for Monday.'],
  ['scheduled', 'Your reminder is set for 7:00.'],
  ['changed', 'I deleted the old file.'],
  ['changed', "I've cancelled your appointment."],
  ['changed', 'I have updated the calendar entry in your calendar.'],
  ['sent', 'Ich habe die E-Mail an Bob gesendet.'],
  ['sent', 'Erledigt, die Nachricht ist verschickt.'],
  ['sent', 'Die Mail habe ich eben weitergeleitet.'],
  ['saved', 'Ich habe mir gemerkt: kein Koriander. Das habe ich in den Notizen abgelegt.'],
  ['booked', 'Ich habe dir einen Tisch für acht Uhr reserviert.'],
  ['scheduled', 'Ich habe eine Erinnerung für morgen eingerichtet.'],
  ['changed', 'Ich habe den Termin am Montag abgesagt.'],
  ['sent', "J'ai envoyé le message à Paul."],
  ['sent', 'Je lui ai bien transmis votre réponse.'],
  ['saved', "C'est noté."],
  ['booked', "J'ai réservé une table pour deux."],
  ['scheduled', "J'ai programmé la réunion pour lundi."],
  ['changed', "J'ai annulé votre rendez-vous."],
  ['sent', 'He enviado el correo a Ana.'],
  ['sent', 'Ya te lo he mandado.'],
  ['saved', 'Guardé la lista en tus notas.'],
  ['booked', 'He reservado una mesa para dos.'],
  ['changed', 'He cancelado la cita.'],
  ['sent', "Ho inviato l'email a Paolo."],
  ['saved', 'Ho salvato la lista nei tuoi appunti.'],
  ['booked', 'Ho prenotato un tavolo per due.'],
  ['scheduled', 'Ho impostato un promemoria per domani.'],
  ['sent', 'Enviei o e-mail para a Ana.'],
  ['saved', 'Anotei a sua preferência.'],
  ['scheduled', 'Agendei a reunião para segunda.'],
  ['changed', 'Cancelei a reserva.'],
  ['saved', 'Ich habe die Datei bericht.md gespeichert.'],
  ['changed', 'I have updated your notes.'],
  ['sent', 'The message was sent successfully.'],
  ['ran', 'I ran the tests and all 42 pass.'],
  ['sent', 'Ich habe den Bericht an anna@example.com geschickt.'],
  ['saved', "J'ai créé le fichier rapport.md."],
  ['booked', 'Ich habe dir für 39.90 Euro ein Zimmer gebucht.'],
  ['saved', 'The report was successfully saved.'],
  ['changed', 'Your appointment was cancelled successfully.'],
  ['scheduled', 'The reminder was created successfully.'],
  ['changed', 'Ich habe deine Notizen aktualisiert.'],
  ['changed', "J'ai mis à jour vos notes."],
  ['changed', 'He actualizado tus notas.'],
  ['changed', 'Ho aggiornato le tue note.'],
  ['changed', 'Atualizei as suas notas.'],
  ['sent', 'El mensaje fue enviado con éxito.'],
  ['sent', 'A mensagem foi enviada com sucesso.'],
  ['sent', 'Die Nachricht wurde erfolgreich gesendet.'],
  ['ran', 'I have executed the script, no errors.'],
  ['ran', 'Ich habe die Tests laufen lassen, alle bestehen.'],
  ['ran', 'Ich habe das Skript ausgeführt.'],
  ['ran', "J'ai lancé les tests."],
  ['ran', 'He ejecutado las pruebas.'],
  ['ran', 'Ho eseguito i test.'],
  ['ran', 'Executei os testes.'],
];

const NO_CLAIMS: readonly string[] = [
  'Shall I send the email to Bob?',
  'Have I sent it already?',
  "I'll send it as soon as you say so.",
  'I will book a table and set a reminder.',
  'I can save this to a file if you like.',
  'I have not sent anything yet.',
  "I haven't booked the table.",
  'I could not send the email: the server refused it.',
  "I couldn't save the file.",
  'I tried to send it, but it failed.',
  'Bob sent the email yesterday.',
  'He has booked the table himself.',
  'You sent me three files.',
  'The email was sent by Bob.',
  'I sent it to you yesterday.',
  'As I said earlier, I saved the list.',
  'Once I have sent the mail, I will tell you.',
  "If I've sent the wrong file, tell me.",
  'She wrote: "I have sent you the contract."',
  '> I have sent you the contract.',
  '```\nI have sent you the contract.\n```',
  'Here is a draft:\n\nDear Bob,\nI have sent you the contract.\nBest, Ada',
  'Dear Bob,\n\nI have sent you the contract by mail.\n\nBest wishes',
  'I changed the wording of the second paragraph.',
  'I ordered the list by date.',
  'That saved you an hour.',
  "I've saved you some time.",
  'I wrote a short poem about autumn:',
  'I noted that the report contradicts itself.',
  'I paid attention to the tone.',
  "I've put together a list of options:",
  "I've added a note below.",
  'I have updated the message:',
  'Ich habe dir eine Liste erstellt:',
  "J'ai créé une liste pour vous :",
  'I reserved judgment.',
  'I have removed the second sentence and shortened the rest.',
  'I read the file and found three names.',
  'Soll ich die E-Mail senden?',
  'Ich habe die Mail nicht gesendet.',
  'Ich habe noch keinen Tisch gebucht.',
  'Ich habe gelesen, dass Bob die Mail geschickt hat.',
  'Ich kann dir einen Tisch reservieren.',
  'Die Mail habe ich gestern verschickt.',
  'Wenn ich die Mail gesendet habe, melde ich mich.',
  'Bob hat die Mail gesendet.',
  "Je n'ai pas envoyé le message.",
  'Je peux réserver une table.',
  "J'ai noté que le rapport se contredit.",
  'No he enviado el correo.',
  '¿Quieres que reserve una mesa?',
  "Non ho inviato l'email.",
  'Posso prenotare un tavolo.',
  'Não enviei o e-mail.',
  'Posso agendar a reunião.',
  'The message was sent by Bob.',
  'The message was sent on Monday.',
  'I have updated your list:',
  'I ran the numbers: it is 42.',
  'I ran through the code in my head.',
  'I ran a search for tests and found nothing.',
  'You can run the tests with npm test.',
  'Run the tests, then send me the output.',
  'If the tests pass, the message was sent successfully.',
  'Ich habe die Tests nicht ausgeführt.',
  'Ich habe die Datei bericht.md gelesen.',
  'I have read notes.md and report.md.',
  'I did not run the tests.',
  "Je n'ai pas lancé les tests.",
  'No he ejecutado las pruebas.',
  'Non ho eseguito i test.',
  'Não executei os testes.',
];

describe('a claim', () => {
  it.each(CLAIMS)('%s: %s', (kind, text) => {
    expect(kindsOf(text)).toContain(kind);
  });

  it.each(NO_CLAIMS)('is not made by: %s', (text) => {
    expect(kindsOf(text)).toEqual([]);
  });

  it('is told with its sentence, one of each kind', () => {
    const text = 'Sure. I sent the mail to Bob. I sent it to Ann too. I saved the list to list.md.';
    expect(claimsOf(text)).toEqual([
      { kind: 'sent', sentence: 'I sent the mail to Bob.' },
      { kind: 'saved', sentence: 'I saved the list to list.md.' },
    ]);
  });

  it('costs little in a long answer', () => {
    const text = 'I have put it as the list says and we ich habe das so und so gehört. '.repeat(
      5000,
    );
    const started = cpuMs();
    claimsOf(text);
    claimsOf('a'.repeat(200_000));
    claimsOf('I '.repeat(100_000));
    expect(cpuMs() - started).toBeLessThan(1000);
  });
});

it('what a tool can do is what it vouches for', () => {
  const made = (tool: string, access: 'send' | 'write' | 'execute' | 'read' | 'schedule' | 'say') =>
    (['sent', 'saved', 'booked', 'scheduled', 'changed'] as const).filter((kind) =>
      supports({ tool, access }, kind),
    );
  expect(made('send_email', 'send')).toEqual(['sent']);
  expect(made('send_file', 'say')).toEqual(['sent']);
  expect(made('write_file', 'write')).toEqual(['saved', 'scheduled', 'changed']);
  expect(made('cron', 'schedule')).toEqual(['saved', 'scheduled', 'changed']);
  expect(made('pay', 'write')).toContain('booked');
  expect(made('exec', 'execute')).toHaveLength(5);
  expect(made('mcp_shop_order', 'send')).toHaveLength(5);
  expect(made('mcp_shop_look', 'read')).toEqual([]);
  expect(made('read_file', 'read')).toEqual([]);
});

it('takes no time for an answer of blank lines', () => {
  const blank = '\n'.repeat(20_000);
  const took = [1, 2, 3].map(() => {
    const started = cpuMs();
    for (const before of ['', 'Dear Olga,\n', 'A draft:\n']) claimsOf(`${before}${blank}`);
    return cpuMs() - started;
  });
  expect(Math.min(...took)).toBeLessThan(200);
});
