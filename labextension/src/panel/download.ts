/** Files that the browser is given to keep. */

/** Milliseconds that a browser may take to begin a download. */
const DOWNLOAD_GRACE = 60_000;

/** Give a file to the browser to keep. */
export function download(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(url), DOWNLOAD_GRACE);
}
