import { ActionButton } from '../actions/action-button.tsx';
import { letterAction } from '../actions/letter-actions.ts';
import { DeadLetterDetailDocument } from '../gql/graphql.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Figures, Json, Scrollable } from '../parts/figures.tsx';
import { count, keyText, number, Time } from '../parts/format.tsx';
import { Notice } from '../parts/marks.tsx';
import { Problem } from '../parts/problem.tsx';
import { Loading } from '../parts/table.tsx';
import { to } from '../router.ts';
import { useRights } from '../server/caller.ts';
import { useQuery } from '../server/use-query.ts';
import type { Letter } from './dead-letters.tsx';

interface LetterDialogProps {
  readonly letter: Letter;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** One dead letter: the error with its stack, the event, and what is blocked behind it. */
export function LetterDialog({ letter, onDone, onClose }: LetterDialogProps) {
  const { id, of, position, eventType, key } = letter;
  const mayRead = useRights().has('DATA');
  const { data, error } = useQuery(DeadLetterDetailDocument, { id, position, data: mayRead });
  const detail = data?.deadLetter;
  const done = () => {
    onDone();
    onClose();
  };
  return (
    <Dialog title={`${eventType} at ${number(position)}`} onClose={onClose}>
      <Figures
        items={[
          { name: 'Of', value: of },
          { name: 'Key', value: key == null ? '–' : <code>{keyText(key)}</code> },
          { name: 'Attempts', value: number(letter.attempts) },
          { name: 'Stored', value: <Time at={letter.at} /> },
          !!detail && { name: 'Blocked behind it', value: count(detail.blocked) },
          !!detail?.takenBy?.length && {
            name: 'Rows with its unique values',
            value: <code>{detail.takenBy.map(keyText).join(', ')}</code>,
          },
        ]}
      />
      {letter.error ? (
        <Notice tone="bad">{letter.error.message}</Notice>
      ) : (
        <Notice tone="quiet">It waits behind an earlier dead letter of the same key.</Notice>
      )}
      {error && <Problem error={error} />}
      {!data && !error && <Loading />}
      {detail?.error?.stack && (
        <details open>
          <summary>Stack</summary>
          <Scrollable class="json" label="Stack">
            <pre>{detail.error.stack}</pre>
          </Scrollable>
        </details>
      )}
      {data && mayRead && data.event && (
        <details open>
          <summary>Payload</summary>
          <Json label="Payload" value={data.event.payload} />
        </details>
      )}
      <footer>
        <a class="button" href={to(['log', position])} onClick={onClose}>
          Open the event
        </a>
        {(['RETRY_DEAD_LETTERS', 'DISCARD_DEAD_LETTERS'] as const).map((name) => (
          <ActionButton key={name} action={letterAction(name, 'this one', { ids: [id] })} onDone={done} />
        ))}
      </footer>
    </Dialog>
  );
}
