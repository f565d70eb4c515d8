/** Outputs that stand for what was left out. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type * as nbformat from '@jupyterlab/nbformat';
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import type {
  IAgentExecApi,
  IExecutionModel,
  IImage,
  ILeftOut
} from '../tokens';
import { element, linkButton } from '../ui/elements';
import { kindText, sizeText } from '../ui/wording';

/** A type that no agent can know, so that none can put out what looks so. */
const LEFT_OUT = `application/vnd.jupyter-agent-exec.${UUID.uuid4()}+json`;

/** The same for an image. */
const IMAGE = `image/vnd.jupyter-agent-exec.${UUID.uuid4()}`;

/** What is needed to show what was left out. */
interface ILeftOutOptions {
  /** An execution by its id. */
  find: (id: string) => IExecutionModel | null;
  api: IAgentExecApi;
  trans: TranslationBundle;
  /** Tells a user that something they asked for failed. */
  onError: (error: unknown) => void;
}

/** Which output was left out. */
interface IPlace {
  id: string;
  index: number;
}

/** An output that is shown in place of one that was left out. */
export function leftOutOutput(
  id: string,
  index: number,
  isImage: boolean
): nbformat.IOutput {
  return {
    output_type: 'display_data',
    // Elsewhere, as in a copy, the text is shown.
    data: { [isImage ? IMAGE : LEFT_OUT]: { id, index }, 'text/plain': '…' },
    metadata: {}
  };
}

/** Have a registry render what was left out. */
export function addLeftOut(
  registry: IRenderMimeRegistry,
  options: ILeftOutOptions
): void {
  registry.addFactory(
    {
      safe: true,
      mimeTypes: [IMAGE, LEFT_OUT],
      createRenderer: () => new LeftOutRenderer(options)
    },
    0
  );
}

/** Shows an image that was left out, or a line with a button. */
class LeftOutRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(private readonly _options: ILeftOutOptions) {
    super();
    this.addClass('jp-AgentExecLeftOut');
  }

  async renderModel({ data }: IRenderMime.IMimeModel): Promise<void> {
    const place = data[IMAGE] ?? data[LEFT_OUT];
    const { id, index } = place as unknown as IPlace;
    const model = this._options.find(id);
    const left = model?.execution.left_out.find(each => each.index === index);
    const image = model?.execution.images.find(each => each.output === index);
    if (image?.url) {
      this.node.replaceChildren(this._createImage(image, image.url));
    } else if (model && left) {
      this.node.replaceChildren(this._createLine(model, left));
    }
  }

  private _createImage(image: IImage, url: string): HTMLElement {
    const { api, trans } = this._options;
    const node = element('img', '');
    node.alt = trans.__('Image output of the cell');
    node.loading = 'lazy';
    if (image.width !== null && image.height !== null) {
      node.width = image.width;
      node.height = image.height;
    }
    node.addEventListener('error', () =>
      node.replaceWith(trans.__('Cannot be shown'))
    );
    node.src = api.blobURL(url);
    return node;
  }

  private _createLine(model: IExecutionModel, left: ILeftOut): HTMLElement {
    const { api, onError, trans } = this._options;
    const kind = kindText(left, model.outputs[left.index], trans);
    const size = sizeText(left.bytes);
    const name = trans.__('Show %1 (%2)', kind, size);
    const button = linkButton(name, () => {
      button.textContent = trans.__('Loading…');
      // The button goes with what it stands for.
      button.closest<HTMLElement>('.jp-Cell')?.focus();
      model.openOutput(left.index, api).catch(error => {
        button.textContent = name;
        onError(error);
      });
    });
    const line = element('div', '');
    line.append(button);
    return line;
  }
}
